/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Data that the BPF programs hand to the observer. Mirrored by crates/observe/src/bpf/layout.rs, which asserts every
 * size. Times are nanoseconds of CLOCK_MONOTONIC. */
#ifndef NEARMISS_BPF_OBSERVE_H
#define NEARMISS_BPF_OBSERVE_H

#include <linux/types.h>

#define LOG2_SLOTS 40 /* slot i counts values v with floor(log2(max(v, 1))) == i */

/* Lock kinds beside the kernel's own contention flags (LCB_F_*, below 0x100). */
#define LOCK_FUTEX 0x100
#define LOCK_FUTEX_PI 0x200
#define LOCK_FUTEXV 0x400

struct lock_key {
    __u64 address; /* kernel address, or user address for futexes */
    __u32 flags;
    __s32 stack; /* kernel stack id; -1 for futexes */
    __u32 tgid;  /* of the waiter for futexes, else 0 */
    __u32 padding;
};

/* Owner of a kernel lock, as far as its address shows. */
enum lock_owner {
    OWNER_MM = 1,
    OWNER_SIGHAND,
    OWNER_SIGNAL,
    OWNER_FILES,
    OWNER_TASK,
    OWNER_RUNQUEUE,
};

struct lock_place {
    __u32 owner, offset; /* in the owner's structure */
};

struct wait_stat {
    __u64 count, total_ns, max_ns;
    __u64 inverse_min_ns; /* ~min, so that zero means none yet */
    __u32 log2_ns[LOG2_SLOTS];
};

struct lock_event { /* one wait, on request */
    __u64 end_ns, wait_ns, address;
    __u32 flags;
    __s32 stack;
    __u32 tid, tgid;
    __u32 cpu, padding;
};

#define USER_STACK_BYTES 2048
struct futex_stack { /* registers and top of stack of a futex waiter, for some waits of each futex */
    __u64 address, ip, sp, bp;
    __u32 tgid, tid;
    __u32 bytes, nth; /* bytes copied; which wait of this futex this is */
    __u8 stack[USER_STACK_BYTES];
};

enum poll_kind {
    POLL_POLL,
    POLL_PPOLL,
    POLL_SELECT,
    POLL_PSELECT6,
    POLL_EPOLL_WAIT,
    POLL_EPOLL_PWAIT,
    POLL_EPOLL_PWAIT2,
    POLL_IO_URING_ENTER,
    POLL_KINDS
};

struct poll_stat {
    __u32 tid, kind;
    __u64 started_ns; /* distinguishes a thread from a later one of the same number */
    /* The call under way: when it began, 0 if there is none; the thread's CPU time then; the descriptors or events it
     * polls for; how long it would wait, below 0 if without limit. */
    __u64 enter_ns, enter_runtime_ns, requested;
    __s64 timeout_ns;
    __u32 tgid, last_cpu;
    __u64 calls, requested_total, events;
    __u64 with_events, empty, failed; /* calls that returned > 0, 0, < 0 */
    __u64 zero_timeout;
    __u64 blocked_ns, on_cpu_ns;
    __u64 intervals, interval_ns; /* time since the thread's last call of this kind ended */
    __u64 cpu_changes;
    __u64 first_ns, last_exit_ns;
    __u32 log2_interval_ns[LOG2_SLOTS];
    __u32 log2_events[16]; /* of the calls with events */
    __u32 set, row; /* the epoll descriptor of the last call; the place of this row */
    /* With a log: events of descriptors that the call before returned too, and that the thread need not wait for; events
     * of which that is not known. */
    __u64 again, not_compared;
    char comm[16];
};

struct poll_event { /* one call, on request */
    __u64 enter_ns, exit_ns, blocked_ns, on_cpu_ns, interval_ns;
    __s64 timeout_ns; /* below 0: without limit */
    __u32 requested, kind;
    __s32 returned, again; /* below 0: not known */
    __u32 cpu, tid, tgid, padding;
};

struct io_key {
    __u32 device; /* major << 20 | minor */
    __u32 operation;
    __u32 tgid; /* of the submitter */
    __u32 padding;
    char comm[16];
};

struct io_stat {
    __u64 count, bytes, errors;
    __u64 queue_ns, device_ns; /* start to issue; issue to completion */
    __u64 max_ns, inverse_min_ns;
    __u32 log2_queue_ns[LOG2_SLOTS];
    __u32 log2_device_ns[LOG2_SLOTS];
};

struct memory_stat { /* by process */
    char comm[16];
    __u64 pages, allocations;           /* pages it was given, in so many calls */
    __u64 reclaims, reclaim_ns, max_ns; /* direct reclaims, and their time */
    __u64 reclaimed;                    /* pages that it freed in them */
};

struct queue_stat { /* per device: requests in flight, seen by each request as it starts */
    __u64 in_flight, samples, sum, max;
    __u64 busy_ns, busy_since_ns;
    __u64 weighted_ns, changed_ns; /* integral of the length over time; when it last changed */
    __u32 log2_length[16]; /* slot 0: empty queue; slot i: length in [2^(i-1), 2^i) */
};

#define REASON_BLOCK_IO 1
#define REASON_KERNEL_LOCK 2
#define REASON_PAGE_FAULT 3
#define REASON_KERNEL_THREAD 4
#define REASON_OTHER 5    /* more reasons than a task has room for */
#define REASON_SYSCALL 16 /* + the number of the system call the task sleeps in */

/* The observer's parameters for the programs, changed while they run. */
struct control {
    __u64 begin_ns, end_ns; /* the window; 0: not yet known */
    __u32 phase, padding;   /* of `snapshot`: 0: the observation begins, 1: it ends */
};

#define OFF_REASONS 12

struct off_stat { /* the waits of a task for one reason */
    __u32 reason, count;
    __u64 ns;
};

enum task_state {
    STATE_UNKNOWN, /* no switch of it was seen */
    STATE_ON_CPU,
    STATE_PREEMPTED, /* runnable, and would go on: another came first, or it has never run yet */
    STATE_WOKEN,     /* runnable again after a wait */
    STATE_WAITING,
};

/* A task's time in the window, by the state it was in, and the kernel's own accounts of it. */
struct task_stat {
    __u32 tid, tgid;
    char comm[16];
    __u64 born_ns, ended_ns; /* 0: before the observation; 0: it lives */
    __u64 since_ns;          /* of the state under way */
    __u64 runtime_ns;        /* the kernel's account of its CPU time when the state began */
    __u64 futex;             /* the futex it sleeps on, or 0 */
    __u32 futex_kind, state, reason, padding;
    __u64 on_cpu_ns, preempted_ns, woken_ns;
    __u64 stolen_ns; /* of on_cpu_ns: what the kernel's account of the task lacks */
    __u64 base_cpu_ns, base_wait_ns, base_runs, base_voluntary, base_involuntary, base_migrations, base_user_ns,
        base_system_ns;
    __u64 cpu_ns, wait_ns, runs, voluntary, involuntary, migrations, user_ns, system_ns;
    struct off_stat off[OFF_REASONS]; /* the last: all further reasons */
};

/* How many are in a state, and for how long: the sum over the CPUs of area + open * (t - changed_ns) is the time spent
 * in the state until t, and grows while a wait lasts. A task may enter a state on one CPU and leave it on another. */
enum flow {
    FLOW_ON_CPU,
    FLOW_PREEMPTED,
    FLOW_WOKEN,
    FLOW_FUTEX,
    FLOW_KERNEL_LOCK,
    FLOWS
};

struct flow_cell {
    __s64 area_ns, open;
    __u64 changed_ns;
};

struct flows {
    struct flow_cell of[FLOWS];
};

enum counter { /* per CPU, for the time line */
    COUNT_POLL_CALLS,
    COUNT_POLL_EVENTS,
    COUNT_IO_DONE,
    COUNT_IO_BYTES,
    COUNT_SWITCHES,
    COUNT_DROPPED_LOCKS, /* no room in a map or ring: the observer reports these */
    COUNT_DROPPED_POLLS,
    COUNT_DROPPED_IO,
    COUNT_DROPPED_TASKS,
    COUNT_DROPPED_LOG,
    COUNT_DROPPED_STACKS,
    COUNT_DROPPED_MEMORY,
    COUNTERS
};

#endif
