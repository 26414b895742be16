/* SPDX-License-Identifier: GPL-2.0-or-later
 *
 * QEMU's own translation cache grows only while it is flushed (tlb_mmu_resize_locked: twice as large when more than
 * 70% of it was in use), and a guest that runs one task seldom flushes it: a program of ten thousand pages would run
 * on 256 entries, and walk its page tables at every other access. So it is flushed now and then, which the guest cannot
 * notice. Soon after a window's start often, so that it reaches its size; then seldom. Only with one TCG thread, where
 * nobody else can be looking at it.
 */
#include "tap.h"

#include <time.h>

enum { FIRST_PAUSE_NS = 1000000, LONGEST_PAUSE_NS = 64000000 };

/* Not part of the plugin interface, but every QEMU with loadable modules exports them. */
__attribute__((weak)) QEMU_IMPORT void *qemu_get_cpu(int index);
__attribute__((weak)) QEMU_IMPORT void tlb_flush(void *cpu);

static uint64_t now_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

void refill_look(struct vcpu *v)
{
    if (tap.multi || !qemu_get_cpu || !tlb_flush)
        return;
    const uint64_t now = now_ns();
    if (now < v->refill.next_ns)
        return;
    if (v->refill.pause_ns)
        __atomic_fetch_or(&v->attention, ATTEND_REFILL, __ATOMIC_RELAXED);
    v->refill.pause_ns = v->refill.pause_ns ? v->refill.pause_ns * 3 / 2 : FIRST_PAUSE_NS;
    if (v->refill.pause_ns > LONGEST_PAUSE_NS)
        v->refill.pause_ns = LONGEST_PAUSE_NS;
    v->refill.next_ns = now + v->refill.pause_ns;
}

void refill(struct vcpu *v)
{
    __atomic_fetch_and(&v->attention, ~(uint32_t)ATTEND_REFILL, __ATOMIC_RELAXED);
    tlb_flush(qemu_get_cpu((int)v->index));
}
