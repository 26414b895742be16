/* SPDX-License-Identifier: GPL-2.0-or-later
 *
 * Which lines of guest RAM the filters may remember. Each vCPU has a filter of its own, so what one vCPU remembers must
 * be forgotten when another touches the line: a store elsewhere takes the line from every filter, a load elsewhere takes
 * it from the filter of the vCPU that wrote it, as a coherence protocol does. That alone is exact in the recorded order.
 *
 * The modelled order moves accesses inside a round of slices, so a line that is really shared must be sent whole. A
 * line is *shared* when two tasks touched it on two vCPUs, one of them writing, within LIFETIME. A task that moves takes
 * its lines along: another vCPU alone does not make a line shared. The kernel's lines of one vCPU are touched by many
 * tasks: another task alone does not either. A shared line on which nothing passed between two such tasks for LIFETIME is
 * shared no more.
 *
 * If a replay may place tasks anew (tap.by_task), tasks alone count: a line is shared when two tasks touched it, one of
 * them writing, be it on one vCPU. Bytes written there are always sent, so nothing need be sent when a line passes.
 *
 * Time goes in epochs of instructions. A hit in the filter is not seen here, so each vCPU forgets its filter when it
 * enters an epoch: what it goes on using is sent, and seen here, once an epoch.
 *
 * One word a line of state, and one bit a byte of guest RAM for bytes written under a displaced filter entry.
 */
#include "tap.h"

#include <string.h>
#include <sys/mman.h>

/* An epoch is so many instructions for each vCPU, the instructions of all vCPUs counted together. A slice takes up to
 * some two million where time follows the instructions (a tick of 4 ms, 2 ns each): LIFETIME covers two rounds of them. */
enum { EPOCH_INSTRUCTIONS = 1 << 17, LIFETIME_EPOCHS = 32 };

enum {
    WRITTEN = 1,  /* the vCPU may remember stores, and no other vCPU remembers the line; of a shared line: there was a
                     store since it last passed from one to another */
    SEVERAL = 2,  /* other vCPUs may remember it, for loads */
    STRANGERS = 4, /* tasks on several vCPUs loaded it lately */
    SHARED = 8,
    TOUCHED = 16, /* so that no touched line's word is 0 */
    EPOCH_SHIFT = 5,
    VCPU_SHIFT = 13,
    TASK_SHIFT = 19,
};
#define EPOCH_MASK (255u << EPOCH_SHIFT)
#define VCPU_MASK (63u << VCPU_SHIFT)
#define TASK_MASK (8191u << TASK_SHIFT)

static uint32_t *states;
static unsigned char *written_bits;

int sharing_init(void)
{
    if (!tap.sharing)
        return 0;
    size_t lines = ram_bytes() >> tap.line_log2;
    const int flags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE;
    states = mmap(NULL, lines * sizeof *states, PROT_READ | PROT_WRITE, flags, -1, 0);
    written_bits = mmap(NULL, ram_bytes() / 8, PROT_READ | PROT_WRITE, flags, -1, 0);
    if (states == MAP_FAILED || written_bits == MAP_FAILED) {
        tap_fail("no address space for the sharing map of %zu lines", lines);
        return -1;
    }
    return 0;
}

uint64_t sharing_enter_epoch(struct vcpu *v, uint64_t instructions)
{
    if (!tap.sharing)
        return ~0ULL;
    const uint64_t length = (uint64_t)EPOCH_INSTRUCTIONS * tap.vcpus;
    const uint32_t epoch = (uint32_t)(instructions / length);
    __atomic_store_n(&tap.epoch, epoch, __ATOMIC_RELAXED);
    if (v->epoch != epoch) {
        v->epoch = epoch;
        filter_clear(v);
    }
    return length - instructions % length;
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

/* The word of a line that this vCPU's task touches now. */
static uint32_t touched_by(const struct vcpu *v)
{
    const uint32_t epoch = __atomic_load_n(&tap.epoch, __ATOMIC_RELAXED);
    return TOUCHED | (epoch << EPOCH_SHIFT & EPOCH_MASK) | v->index << VCPU_SHIFT |
           ((v->task ? v->task->number : 0) << TASK_SHIFT & TASK_MASK);
}

/* Another vCPU had it or, where tasks count, another task. */
static int is_elsewhere(uint32_t state, uint32_t me)
{
    return ((state ^ me) & (tap.by_task ? VCPU_MASK | TASK_MASK : VCPU_MASK)) != 0;
}
static int is_stranger(uint32_t state, uint32_t me) { return is_elsewhere(state, me) && (state ^ me) & TASK_MASK; }
static int is_recent(uint32_t state, uint32_t me)
{
    return (((me & EPOCH_MASK) - (state & EPOCH_MASK)) & EPOCH_MASK) >> EPOCH_SHIFT < LIFETIME_EPOCHS;
}

/* A shared line keeps the epoch in which it last passed from one to another. */
static uint32_t after_shared(uint32_t state, uint32_t me, int store)
{
    const uint32_t written = store ? WRITTEN : 0;
    if (is_stranger(state, me) && (store || state & WRITTEN))
        return me | SHARED | written;
    return (me & ~EPOCH_MASK) | (state & (EPOCH_MASK | WRITTEN)) | SHARED | written;
}

static uint32_t after(uint32_t state, uint32_t me, int store)
{
    if (!state)
        return me | (store ? WRITTEN : 0);
    const int recent = is_recent(state, me), stranger = recent && is_stranger(state, me);
    if (recent && state & SHARED)
        return after_shared(state, me, store);
    const uint32_t strangers = stranger || (recent && state & STRANGERS) ? STRANGERS : 0;
    if (store)
        return me | WRITTEN | (strangers ? SHARED : 0);
    if (!is_elsewhere(state, me))
        return me | (state & (WRITTEN | SEVERAL)) | strangers;
    if (state & WRITTEN)
        return me | (stranger ? SHARED : 0);
    return me | SEVERAL | strangers;
}

/* Whether filters other than the toucher's may remember what is no longer so. None remembers a shared line. */
static int must_be_taken(uint32_t state, uint32_t me, int store)
{
    if (!state || state & SHARED)
        return 0;
    return is_elsewhere(state, me) ? store || state & WRITTEN : store && state & SEVERAL;
}

/* The line passes to this vCPU: the others forget it, and the bytes that they wrote unseen are sent. */
static void take(struct vcpu *v, uint64_t line, uint32_t state, int is_shared)
{
    uint64_t written = 0;
    for (uint32_t i = 0; i < tap.vcpus; i++)
        if (i != v->index || is_shared)
            written |= filter_take(&tap_vcpus[i], line);
    written |= take_written(line);
    if (is_shared)
        __atomic_fetch_add(&tap.control->lost_before_share, 1, __ATOMIC_RELAXED);
    if ((written || is_shared) && !tap.by_task)
        ring_control(v, NM_C_SHARE, line, (state & VCPU_MASK) >> VCPU_SHIFT, written, NULL, 0);
}

int sharing_touch(struct vcpu *v, uint64_t line, int store)
{
    const uint32_t me = touched_by(v);
    const uint32_t state = states[line], next = after(state, me, store);
    if (next == state)
        return (next & SHARED) != 0;
    states[line] = next;
    if (must_be_taken(state, me, store))
        take(v, line, state, (next & SHARED) != 0);
    return (next & SHARED) != 0;
}
