/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* CPU time, run-queue waits, switches and migrations come from the kernel's own task accounts, read when the
 * observation begins, when a task ends and when the observation ends: exact, and free while tasks run. Only
 * the reasons of off-CPU time need a program on every switch. */

struct {
    __uint(type, BPF_MAP_TYPE_HASH);
    __uint(max_entries, 32768);
    __type(key, __u32); /* tid */
    __type(value, struct task_stat);
} tasks SEC(".maps");

struct {
    __uint(type, BPF_MAP_TYPE_HASH);
    __uint(max_entries, 65536);
    __type(key, struct off_key);
    __type(value, struct off_stat);
} off_stats SEC(".maps");

struct {
    __uint(type, BPF_MAP_TYPE_ARRAY);
    __uint(max_entries, 1);
    __type(key, __u32);
    __type(value, struct task_stat);
} empty_task SEC(".maps");

#define TASK_DEAD 0x80

__u32 phase = 0; /* 0: the observation begins, 1: it ends */

static __always_inline struct task_stat *task_entry(struct task_struct *task)
{
    __u32 tid = task->pid;
    struct task_stat *stat = bpf_map_lookup_elem(&tasks, &tid);
    if (stat)
        return stat;
    __u32 zero = 0;
    struct task_stat *empty = bpf_map_lookup_elem(&empty_task, &zero);
    if (empty)
        bpf_map_update_elem(&tasks, &tid, empty, BPF_NOEXIST);
    stat = bpf_map_lookup_elem(&tasks, &tid);
    if (!stat) {
        add(COUNT_DROPPED_TASKS, 1);
        return 0;
    }
    stat->tid = tid;
    stat->tgid = task->tgid;
    return stat;
}

static __always_inline void final_figures(struct task_struct *task, struct task_stat *stat)
{
    stat->cpu_ns = task->se.sum_exec_runtime;
    stat->wait_ns = task->sched_info.run_delay;
    stat->runs = task->sched_info.pcount;
    stat->voluntary = task->nvcsw;
    stat->involuntary = task->nivcsw;
    stat->migrations = task->se.nr_migrations;
    stat->user_ns = task->utime;
    stat->system_ns = task->stime;
    bpf_probe_read_kernel(stat->comm, sizeof(stat->comm), task->comm);
}

/* As wanted() for a task that is not the current one. */
static __always_inline bool in_cgroup(struct task_struct *task)
{
    struct cgroup *of = BPF_CORE_READ(task, cgroups, dfl_cgrp);
    if (BPF_CORE_READ(of, level) < (int)cgroup_level)
        return false;
    struct cgroup **list = (void *)of + bpf_core_field_offset(struct cgroup, ancestors);
    struct cgroup *ancestor = 0;
    bpf_probe_read_kernel(&ancestor, sizeof(ancestor), &list[cgroup_level]);
    return BPF_CORE_READ(ancestor, kn, id) == cgroup_id;
}

SEC("iter/task")
int snapshot(struct bpf_iter__task *ctx)
{
    struct task_struct *task = ctx->task;
    if (!task)
        return 0;
    __u32 tgid = task->tgid;
    if (who == WHO_TASKS && !bpf_map_lookup_elem(&targets, &tgid))
        return 0;
    if (tgid == self_tgid)
        return 0;
    __u32 tid = task->pid;
    if (who == WHO_CGROUP && !in_cgroup(task) && !bpf_map_lookup_elem(&tasks, &tid))
        return 0;
    struct task_stat *stat = task_entry(task);
    if (!stat || stat->state == TASK_ENDED)
        return 0;
    final_figures(task, stat);
    if (phase == 0) {
        stat->base_cpu_ns = stat->cpu_ns;
        stat->base_wait_ns = stat->wait_ns;
        stat->base_runs = stat->runs;
        stat->base_voluntary = stat->voluntary;
        stat->base_involuntary = stat->involuntary;
        stat->base_migrations = stat->migrations;
        stat->base_user_ns = stat->user_ns;
        stat->base_system_ns = stat->system_ns;
        stat->state = TASK_AT_START;
    }
    return 0;
}

SEC("tp_btf/sched_process_fork")
int task_fork(__u64 *ctx)
{
    struct task_struct *parent = (void *)ctx[0];
    struct task_struct *child = (void *)ctx[1];
    __u32 tgid = parent->tgid;
    if (who != WHO_TASKS || !bpf_map_lookup_elem(&targets, &tgid))
        return 0;
    __u8 one = 1;
    tgid = child->tgid;
    bpf_map_update_elem(&targets, &tgid, &one, BPF_ANY);
    return 0;
}

/* Why a task leaves the CPU; for a futex, which one. */
static __always_inline __u32 off_reason(struct task_struct *prev, bool preempt, __u32 state, struct task_stat *stat)
{
    if (preempt || !(state & 0x7f))
        return REASON_PREEMPTED;
    if (BPF_CORE_READ_BITFIELD(prev, in_iowait)) /* a plain read would take the bit this header has it at */
        return REASON_BLOCK_IO;
    __u64 waiting = (__u32)prev->pid;
    if (want_locks && bpf_map_lookup_elem(&lock_waits, &waiting))
        return REASON_KERNEL_LOCK;
    if (prev->flags & PF_KTHREAD)
        return REASON_KERNEL_THREAD;
    struct pt_regs *regs = (void *)bpf_task_pt_regs(prev);
    long number = BPF_CORE_READ(regs, orig_ax);
    if (number < 0)
        return REASON_PAGE_FAULT;
    if (want_locks)
        stat->futex = futex_begin(prev, regs, number, &stat->futex_kind);
    return REASON_SYSCALL + (__u32)number;
}

SEC("tp_btf/sched_switch")
int task_switch(__u64 *ctx)
{
    struct task_struct *prev = (void *)ctx[1];
    struct task_struct *next = (void *)ctx[2];
    __u64 now = 0;
    __u32 tid = prev->pid;
    if (tid && wanted(prev->tgid)) {
        struct task_stat *stat = task_entry(prev);
        if (stat) {
            now = bpf_ktime_get_ns();
            stat->off_since_ns = now;
            stat->off_reason = off_reason(prev, ctx[0], ctx[3], stat);
            if (ctx[3] & TASK_DEAD) {
                final_figures(prev, stat);
                stat->state = TASK_ENDED;
                stat->off_since_ns = 0;
            }
        }
        add(COUNT_SWITCHES, 1);
    }
    tid = next->pid;
    if (!tid)
        return 0;
    struct task_stat *stat = bpf_map_lookup_elem(&tasks, &tid);
    if (!stat || !stat->off_since_ns)
        return 0;
    if (!now)
        now = bpf_ktime_get_ns();
    if (stat->futex) {
        futex_end(next, stat->futex, stat->futex_kind, now, now - stat->off_since_ns);
        stat->futex = 0;
    }
    struct off_key key = {.tid = tid, .reason = stat->off_reason};
    struct off_stat *off = bpf_map_lookup_elem(&off_stats, &key);
    if (off) {
        off->ns += now - stat->off_since_ns;
        off->count++;
    } else {
        struct off_stat first = {.ns = now - stat->off_since_ns, .count = 1};
        if (bpf_map_update_elem(&off_stats, &key, &first, BPF_NOEXIST))
            add(COUNT_DROPPED_TASKS, 1);
    }
    stat->off_since_ns = 0;
    return 0;
}
