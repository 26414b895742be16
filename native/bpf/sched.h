/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Accounts of each task's time. Every switch and every wake-up ends one state of a task and begins the next, so the
 * states of a task fill its life; all outside the window is cut off. Without the scheduler's tracepoints only the
 * kernel's own accounts are read: when the observation begins, once a second, when a task is gone, and at the end. */

struct {
    __uint(type, BPF_MAP_TYPE_HASH);
    __uint(max_entries, 16384);
    __type(key, __u64); /* the task's address: a number changes hands, and an exec by a thread changes the number */
    __type(value, struct task_stat);
} tasks SEC(".maps");

struct {
    __uint(type, BPF_MAP_TYPE_RINGBUF);
    __uint(max_entries, 4 << 20);
} ended_tasks SEC(".maps");

struct {
    __uint(type, BPF_MAP_TYPE_ARRAY);
    __uint(max_entries, 1);
    __type(key, __u32);
    __type(value, struct task_stat);
} empty_task SEC(".maps");

#define TASK_DEAD 0x80
#define SLEEPING 0x907f /* in __state: interruptible to parked, waiting for an RT lock, frozen */

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

static __always_inline bool wanted_task(struct task_struct *task)
{
    if (task->tgid == self_tgid)
        return false;
    return who == WHO_CGROUP ? in_cgroup(task) : wanted(task->tgid);
}

static __always_inline struct task_stat *known_task(struct task_struct *task)
{
    __u64 key = (__u64)task;
    return bpf_map_lookup_elem(&tasks, &key);
}

static __always_inline void take_accounts(struct task_struct *task, struct task_stat *stat)
{
    stat->cpu_ns = task->se.sum_exec_runtime;
    stat->wait_ns = task->sched_info.run_delay;
    stat->runs = task->sched_info.pcount;
    stat->voluntary = task->nvcsw;
    stat->involuntary = task->nivcsw;
    stat->migrations = task->se.nr_migrations;
    stat->user_ns = task->utime;
    stat->system_ns = task->stime;
    /* An exec changes both, and the number too where a thread executes. */
    stat->tid = task->pid;
    bpf_probe_read_kernel(stat->comm, sizeof(stat->comm), task->comm);
}

/* Adds a task that was not known. Its time before the observation is no part of it. */
static __always_inline struct task_stat *new_task(struct task_struct *task)
{
    __u64 key = (__u64)task;
    __u32 zero = 0;
    struct task_stat *empty = bpf_map_lookup_elem(&empty_task, &zero);
    if (empty)
        bpf_map_update_elem(&tasks, &key, empty, BPF_NOEXIST);
    struct task_stat *stat = bpf_map_lookup_elem(&tasks, &key);
    if (!stat) {
        add(COUNT_DROPPED_TASKS, 1);
        return 0;
    }
    stat->tgid = task->tgid;
    take_accounts(task, stat);
    if (control.begin_ns && task->start_time >= control.begin_ns)
        return stat;
    stat->base_cpu_ns = stat->cpu_ns;
    stat->base_wait_ns = stat->wait_ns;
    stat->base_runs = stat->runs;
    stat->base_voluntary = stat->voluntary;
    stat->base_involuntary = stat->involuntary;
    stat->base_migrations = stat->migrations;
    stat->base_user_ns = stat->user_ns;
    stat->base_system_ns = stat->system_ns;
    return stat;
}

/* Ends a task. Its figures are final: the observer keeps them from here on. */
static __always_inline void end_task(struct task_struct *task, struct task_stat *stat, __u64 now)
{
    take_accounts(task, stat);
    stat->ended_ns = now;
    if (bpf_ringbuf_output(&ended_tasks, stat, sizeof(*stat), BPF_RB_NO_WAKEUP))
        add(COUNT_DROPPED_TASKS, 1);
    __u64 key = (__u64)task;
    bpf_map_delete_elem(&tasks, &key);
}

/* A system call is kept by its number, everything else by its reason. */
static __always_inline void count_off(struct task_stat *stat, __u64 ns)
{
    for (int i = 0; i < OFF_REASONS; i++) {
        struct off_stat *off = &stat->off[i];
        if (!off->count)
            off->reason = i == OFF_REASONS - 1 ? REASON_OTHER : stat->reason;
        if (off->reason == stat->reason || i == OFF_REASONS - 1) {
            off->ns += ns;
            off->count++;
            return;
        }
    }
}

/* Ends the state under way. */
static __always_inline void leave_state(struct task_struct *task, struct task_stat *stat, __u64 now)
{
    __u64 ns = within(stat->since_ns, now);
    switch (stat->state) {
    case STATE_ON_CPU: {
        stat->on_cpu_ns += ns;
        flow_change(FLOW_ON_CPU, now, -1);
        __u64 account = task->se.sum_exec_runtime - stat->runtime_ns;
        if (stat->since_ns >= control.begin_ns && ns > account)
            stat->stolen_ns += ns - account;
        break;
    }
    case STATE_PREEMPTED:
        stat->preempted_ns += ns;
        flow_change(FLOW_PREEMPTED, now, -1);
        break;
    case STATE_WOKEN:
        stat->woken_ns += ns;
        flow_change(FLOW_WOKEN, now, -1);
        break;
    case STATE_WAITING:
        if (has_begun(now))
            count_off(stat, ns);
        if (stat->futex) {
            futex_end(task, stat->futex, stat->futex_kind, now, ns);
            flow_change(FLOW_FUTEX, now, -1);
            stat->futex = 0;
        }
        break;
    }
}

static __always_inline void enter_state(struct task_struct *task, struct task_stat *stat, __u32 state, __u64 now)
{
    stat->state = state;
    stat->since_ns = now;
    switch (state) {
    case STATE_ON_CPU:
        stat->runtime_ns = task->se.sum_exec_runtime;
        flow_change(FLOW_ON_CPU, now, 1);
        break;
    case STATE_PREEMPTED:
        flow_change(FLOW_PREEMPTED, now, 1);
        break;
    case STATE_WOKEN:
        flow_change(FLOW_WOKEN, now, 1);
        break;
    case STATE_WAITING:
        if (stat->futex)
            flow_change(FLOW_FUTEX, now, 1);
        break;
    }
}

/* Why a task waits; for a futex, which one. */
static __always_inline __u32 off_reason(struct task_struct *task, struct task_stat *stat, bool current)
{
    if (BPF_CORE_READ_BITFIELD(task, in_iowait)) /* a plain read would take the bit this header has it at */
        return REASON_BLOCK_IO;
    __u64 waiting = (__u32)task->pid;
    if (want_locks && bpf_map_lookup_elem(&lock_waits, &waiting))
        return REASON_KERNEL_LOCK;
    if (task->flags & PF_KTHREAD)
        return REASON_KERNEL_THREAD;
    struct pt_regs *regs = (void *)bpf_task_pt_regs(task);
    long number = BPF_CORE_READ(regs, orig_ax);
    if (number < 0)
        return REASON_PAGE_FAULT;
    if (want_locks)
        stat->futex = futex_begin(task, regs, number, &stat->futex_kind, current);
    return REASON_SYSCALL + (__u32)number;
}

/* The state in which a task is found that was there before the observation. */
static __always_inline void find_state(struct task_struct *task, struct task_stat *stat, __u64 now)
{
    if (task->on_cpu)
        return enter_state(task, stat, STATE_ON_CPU, now);
    if (!(task->__state & SLEEPING))
        return enter_state(task, stat, STATE_PREEMPTED, now);
    stat->reason = off_reason(task, stat, false);
    if (want_polls)
        poll_found(task, now);
    enter_state(task, stat, STATE_WAITING, now);
}

SEC("iter/task")
int snapshot(struct bpf_iter__task *ctx)
{
    struct task_struct *task = ctx->task;
    if (!task)
        return 0;
    struct task_stat *stat = known_task(task);
    if (stat) {
        take_accounts(task, stat);
        return 0;
    }
    /* The switches show every task but those that slept since before the observation, and those that begin after it. */
    bool begins = control.phase == 0;
    if (!wanted_task(task) || (want_switches && (!begins || task->exit_state)))
        return 0;
    stat = new_task(task);
    if (stat && begins)
        find_state(task, stat, bpf_ktime_get_ns());
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
    if (bpf_map_update_elem(&targets, &tgid, &one, BPF_ANY))
        add(COUNT_DROPPED_TASKS, 1);
    return 0;
}

/* A task is gone, its accounts final; a process goes with its first task. */
SEC("tp_btf/sched_process_free")
int task_free(__u64 *ctx)
{
    struct task_struct *task = (void *)ctx[0];
    __u64 now = bpf_ktime_get_ns();
    if (is_over(now))
        return 0;
    struct task_stat *stat = known_task(task);
    if (!want_switches && !stat && control.begin_ns && who != WHO_CGROUP && wanted(task->tgid))
        stat = new_task(task);
    if (stat)
        end_task(task, stat, now);
    __u32 tgid = task->tgid;
    if (who == WHO_TASKS && task->pid == tgid)
        bpf_map_delete_elem(&targets, &tgid);
    return 0;
}

SEC("tp_btf/sched_wakeup_new")
int task_begins(__u64 *ctx)
{
    struct task_struct *task = (void *)ctx[0];
    __u64 now = bpf_ktime_get_ns();
    if (is_over(now) || known_task(task) || !wanted_task(task))
        return 0;
    struct task_stat *stat = new_task(task);
    if (!stat)
        return 0;
    stat->born_ns = now;
    enter_state(task, stat, STATE_PREEMPTED, now);
    return 0;
}

SEC("tp_btf/sched_wakeup")
int task_wakes(__u64 *ctx)
{
    struct task_struct *task = (void *)ctx[0];
    struct task_stat *stat = known_task(task);
    if (!stat || stat->state != STATE_WAITING)
        return 0;
    __u64 now = bpf_ktime_get_ns();
    if (is_over(now))
        return 0;
    leave_state(task, stat, now);
    enter_state(task, stat, STATE_WOKEN, now);
    return 0;
}

static __always_inline void switch_out(struct task_struct *prev, bool preempted, __u32 state, __u64 now)
{
    struct task_stat *stat = known_task(prev);
    bool mine = (stat && who != WHO_CGROUP) || wanted(prev->tgid);
    if (!stat && !mine)
        return;
    if (!stat) {
        stat = new_task(prev);
        if (!stat)
            return;
        stat->born_ns = now; /* it came into the cgroup */
    }
    leave_state(prev, stat, now);
    if ((state & TASK_DEAD) || !mine)
        return end_task(prev, stat, now);
    bool waits = !preempted && (state & SLEEPING);
    if (waits)
        stat->reason = off_reason(prev, stat, true);
    enter_state(prev, stat, waits ? STATE_WAITING : STATE_PREEMPTED, now);
    if (has_begun(now))
        add(COUNT_SWITCHES, 1);
}

SEC("tp_btf/sched_switch")
int task_switch(__u64 *ctx)
{
    struct task_struct *prev = (void *)ctx[1];
    struct task_struct *next = (void *)ctx[2];
    __u64 now = bpf_ktime_get_ns();
    if (is_over(now))
        return 0;
    if (prev->pid)
        switch_out(prev, ctx[0], ctx[3], now);
    if (!next->pid)
        return 0;
    struct task_stat *stat = known_task(next);
    if (!stat)
        return 0;
    leave_state(next, stat, now);
    enter_state(next, stat, STATE_ON_CPU, now);
    return 0;
}
