/* SPDX-License-Identifier: GPL-2.0-or-later
 *
 * The guest's perf rings, one a CPU: the agent opened them for mmap, comm, fork and exit. A ring is looked at whenever
 * a page is touched that misses in the soft TLB, at every switch, and at the end of a slice: so a mapping is sent
 * before the first access to it.
 */
#include "tap.h"

#include <string.h>

/* `bytes` of the ring from `position` on. */
static int copy_out(const struct vcpu *v, uint64_t position, unsigned char *to, uint64_t bytes)
{
    const uint64_t *pages = (const void *)(tap.file + tap.control->perf_pages_offset[v->index]);
    while (bytes) {
        uint64_t at = position & (tap.control->perf_ring_bytes - 1), now = 4096 - (at & 4095);
        if (now > bytes)
            now = bytes;
        const void *from = ram_at(ram_of_physical(pages[at >> 12]) + (at & 4095), now);
        if (!from)
            return 0;
        memcpy(to, from, now);
        to += now;
        position += now;
        bytes -= now;
    }
    return 1;
}

static __attribute__((noinline)) void send(struct vcpu *v, uint64_t *words, uint64_t head)
{
    if (head - v->perf_head > tap.control->perf_ring_bytes) {
        tap_fail("the guest's perf ring of CPU %u overran: give it more than %llu bytes", v->index,
                 (unsigned long long)tap.control->perf_ring_bytes);
        return;
    }
    /* No reference shows the context. */
    if (parts_see_no_references(v))
        contexts_send_user(v);
    unsigned char bytes[2048];
    while (v->perf_head != head) {
        uint64_t now = head - v->perf_head;
        if (now > sizeof bytes)
            now = sizeof bytes;
        if (!copy_out(v, v->perf_head, bytes, now)) {
            tap_fail("the guest's perf ring of CPU %u does not lie in its RAM", v->index);
            return;
        }
        v->perf_head += now;
        ring_control(v, NM_C_MAPS, 0, 0, now, bytes, (uint32_t)now);
    }
    __atomic_store_n(&words[1], head, __ATOMIC_RELEASE); /* data_tail: the kernel may write there again */
    if (unlikely(window_awaits_maps())) {
        ring_publish(v, 0);
        ring_await_consumer();
    }
}

void maps_open(struct vcpu *v)
{
    const uint64_t physical = tap.control->perf_head_paddr[v->index];
    v->perf_words = physical ? ram_at(ram_of_physical(physical), 16) : NULL;
    if (v->perf_words) /* what is in it is of before the command */
        v->perf_head = __atomic_load_n(v->perf_words, __ATOMIC_ACQUIRE);
}

void maps_poll(struct vcpu *v)
{
    uint64_t *words = v->perf_words;
    if (!words)
        return;
    uint64_t head = __atomic_load_n(words, __ATOMIC_ACQUIRE);
    if (unlikely(head != v->perf_head))
        send(v, words, head);
}
