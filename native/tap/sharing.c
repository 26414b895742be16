/* SPDX-License-Identifier: GPL-2.0-or-later
 *
 * Which lines of guest RAM are shared: touched by two vCPUs, one of them writing. Such lines are never filtered. One
 * byte a line of state, and one bit a byte of guest RAM for bytes written whose filter entry was displaced.
 */
#include "tap.h"

#include <string.h>
#include <sys/mman.h>

enum { UNTOUCHED = 0, READ_BY_SEVERAL = 1, SHARED = 2, OWNED = 4 /* + 2 * vCPU + written */ };

static uint8_t *states;
static unsigned char *written_bits;

int sharing_init(void)
{
    if (!tap.sharing)
        return 0;
    size_t lines = ram_bytes() >> tap.line_log2;
    const int flags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE;
    states = mmap(NULL, lines, PROT_READ | PROT_WRITE, flags, -1, 0);
    written_bits = mmap(NULL, ram_bytes() / 8, PROT_READ | PROT_WRITE, flags, -1, 0);
    if (states == MAP_FAILED || written_bits == MAP_FAILED) {
        tap_fail("no address space for the sharing map of %zu lines", lines);
        return -1;
    }
    return 0;
}

void sharing_keep(uint64_t line, uint64_t written)
{
    unsigned bytes = tap.line_bytes / 8;
    uint64_t had = 0;
    memcpy(&had, written_bits + line * bytes, bytes);
    had |= written;
    memcpy(written_bits + line * bytes, &had, bytes);
}

static uint64_t take_written(uint64_t line)
{
    unsigned bytes = tap.line_bytes / 8;
    uint64_t had = 0;
    memcpy(&had, written_bits + line * bytes, bytes);
    memset(written_bits + line * bytes, 0, bytes);
    return had;
}

static void become_shared(struct vcpu *v, uint64_t line, unsigned owner)
{
    uint64_t written = 0;
    for (uint32_t i = 0; i < tap.vcpus; i++)
        written |= filter_take(&tap_vcpus[i], line);
    written |= take_written(line);
    __atomic_fetch_add(&tap.control->lost_before_share, 1, __ATOMIC_RELAXED);
    ring_control(v, NM_C_SHARE, line, owner, written, NULL, 0);
}

int sharing_touch(struct vcpu *v, uint64_t line, int store)
{
    uint8_t mine = (uint8_t)(OWNED + 2 * v->index);
    uint8_t state = __atomic_load_n(&states[line], __ATOMIC_RELAXED);
    for (;;) {
        uint8_t next;
        if (state == SHARED)
            return 1;
        if (state == UNTOUCHED || (state & ~1) == mine)
            next = store ? mine + 1 : state == UNTOUCHED ? mine : state;
        else
            next = store || (state >= OWNED && (state & 1)) ? SHARED : READ_BY_SEVERAL;
        if (next == state)
            return 0;
        if (!tap.multi) {
            states[line] = next;
        } else if (!__atomic_compare_exchange_n(&states[line], &state, next, 0, __ATOMIC_SEQ_CST, __ATOMIC_RELAXED)) {
            continue;
        }
        if (next != SHARED)
            return 0;
        become_shared(v, line, state >= OWNED ? (state - OWNED) / 2u : v->index);
        return 1;
    }
}
