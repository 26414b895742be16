/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Filter of the observed tasks, and the helpers every program uses. */
#ifndef NEARMISS_BPF_COMMON_H
#define NEARMISS_BPF_COMMON_H

#include "kernel.h"
#include "observe.h"

#define WHO_ALL 0
#define WHO_TASKS 1  /* the processes in `targets`, and their children */
#define WHO_CGROUP 2 /* a cgroup and those below it */

const volatile __u32 who = WHO_ALL;
const volatile __u32 cgroup_level = 0;
const volatile __u64 cgroup_id = 0;
const volatile __u32 self_tgid = 0; /* the observer, never part of what it observes */
const volatile __u32 log_events = 0;
const volatile __u32 want_locks = 0;
const volatile __u32 want_polls = 0;
const volatile __u32 want_switches = 0; /* the scheduler's tracepoints are watched */

volatile struct control control = {};

struct {
    __uint(type, BPF_MAP_TYPE_HASH);
    __uint(max_entries, 16384);
    __type(key, __u32); /* tgid */
    __type(value, __u8);
} targets SEC(".maps");

struct {
    __uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
    __uint(max_entries, COUNTERS);
    __type(key, __u32);
    __type(value, __u64);
} counters SEC(".maps");

struct {
    __uint(type, BPF_MAP_TYPE_RINGBUF);
    __uint(max_entries, 4096); /* set by the loader when the log or call sites are recorded */
} lock_log SEC(".maps");

struct {
    __uint(type, BPF_MAP_TYPE_RINGBUF);
    __uint(max_entries, 4096);
} poll_log SEC(".maps");

static __always_inline bool wanted(__u32 tgid)
{
    if (tgid == self_tgid)
        return false;
    if (who == WHO_TASKS)
        return bpf_map_lookup_elem(&targets, &tgid) != 0;
    if (who == WHO_CGROUP)
        return bpf_get_current_ancestor_cgroup_id(cgroup_level) == cgroup_id;
    return true;
}

static __always_inline void add(__u32 counter, __u64 amount)
{
    __u64 *cell = bpf_map_lookup_elem(&counters, &counter);
    if (cell)
        *cell += amount;
}

/* Time between two instants, cut to the window. */
static __always_inline __u64 within(__u64 from, __u64 to)
{
    __u64 begin = control.begin_ns, end = control.end_ns;
    if (!begin)
        return 0;
    if (from < begin)
        from = begin;
    if (end && to > end)
        to = end;
    return to > from ? to - from : 0;
}

/* Whether what ends now ends in the window, or after it. */
static __always_inline bool has_begun(__u64 now)
{
    return control.begin_ns && now >= control.begin_ns;
}

/* After the window all stays as it is, and what is under way is for the observer to cut. */
static __always_inline bool is_over(__u64 now)
{
    return control.end_ns && now > control.end_ns;
}

struct {
    __uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
    __uint(max_entries, 1);
    __type(key, __u32);
    __type(value, struct flows);
} flows SEC(".maps");

static __always_inline void flow_change(__u32 flow, __u64 now, int by)
{
    __u32 zero = 0;
    struct flows *all = bpf_map_lookup_elem(&flows, &zero);
    if (!all || flow >= FLOWS)
        return;
    struct flow_cell *cell = &all->of[flow];
    cell->area_ns += cell->open * (__s64)within(cell->changed_ns, now);
    cell->changed_ns = now;
    cell->open += by;
}

static __always_inline __u32 log2_slot(__u64 value, __u32 slots)
{
    __u32 slot = 0;
    if (value >> 32) {
        slot += 32;
        value >>= 32;
    }
    if (value >> 16) {
        slot += 16;
        value >>= 16;
    }
    if (value >> 8) {
        slot += 8;
        value >>= 8;
    }
    if (value >> 4) {
        slot += 4;
        value >>= 4;
    }
    if (value >> 2) {
        slot += 2;
        value >>= 2;
    }
    if (value >> 1)
        slot += 1;
    return slot < slots ? slot : slots - 1;
}

/* Returns the CPU time of a task that runs now, up to a constant: the difference of two calls is exact to the
 * nanosecond between scheduler updates too, unlike a plain read of sum_exec_runtime. */
static __always_inline __u64 running_for(struct task_struct *task, __u64 now)
{
    return task->se.sum_exec_runtime + (now - task->se.exec_start);
}

#endif
