/* SPDX-License-Identifier: GPL-2.0-or-later
 *
 * QEMU's own translation cache grows only while it is flushed (tlb_mmu_resize_locked: twice as large when more than
 * 70% of it was in use), and a guest that runs one task seldom flushes it: a program of ten thousand pages would run
 * on 256 entries, and walk its page tables at every other access. So it is flushed now and then, which the guest cannot
 * notice. Soon after a window's start often, so that it reaches its size; then seldom.
 *
 * A page has one place in it, so pages some pages apart (a structure every 8 KiB) fight for a few places and leave the
 * others empty: it is never 70% in use. Before a flush it is therefore filled up to what the program's own pages call
 * for; the tap counts them.
 */
#include "tap.h"

#include <time.h>

enum { FIRST_PAUSE_NS = 1000000, LONGEST_PAUSE_NS = 64000000 };
/* Places in it for each page in use, and how many at least and at most. */
enum { PLACES_A_PAGE = 4, PLACES_LEAST = 256, PLACES_MOST = 8192 };
/* Not so full that it grows beyond, not so empty that it shrinks: QEMU's limits are 70 and 30. */
enum { FILL_PERCENT = 65 };
/* QEMU's name for a page that can be read. */
enum { PAGE_READ = 1 };

static uint64_t now_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

static int possible(void) { return qemu_get_cpu && tlb_flush && tlb_set_page; }

void refill_look(struct vcpu *v)
{
    if (!possible())
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

/* Everything put in here is forgotten before the guest runs on. */
static void fill_and_flush(void *cpu, uint32_t modes, uint32_t places)
{
    for (int mode = 0; modes >> mode; mode++)
        for (uint64_t page = 0; modes >> mode & 1 && page < places * FILL_PERCENT / 100; page++)
            tlb_set_page(cpu, page << 12, 0, PAGE_READ, mode, 4096);
    tlb_flush(cpu);
}

void refill_pages(struct vcpu *v)
{
    if (possible())
        __atomic_fetch_or(&v->attention, ATTEND_REFILL, __ATOMIC_RELAXED);
    v->refill.pages_limit = UINT32_MAX;
}

void refill(struct vcpu *v)
{
    __atomic_fetch_and(&v->attention, ~(uint32_t)ATTEND_REFILL, __ATOMIC_RELAXED);
    void *cpu = qemu_get_cpu((int)v->index);
    uint32_t wanted = PLACES_LEAST;
    while (wanted < v->refill.pages_most * PLACES_A_PAGE && wanted < PLACES_MOST)
        wanted *= 2;
    /* Each flush at most doubles it. */
    uint32_t places = v->refill.places;
    do {
        fill_and_flush(cpu, v->refill.modes, wanted);
        places = places ? places * 2 : PLACES_LEAST;
    } while (places <= wanted);
    v->refill.places = wanted;
    v->refill.pages_most = v->pages;
    v->refill.modes = 0;
    v->refill.pages_limit = wanted < PLACES_MOST ? wanted / PLACES_A_PAGE : UINT32_MAX;
}
