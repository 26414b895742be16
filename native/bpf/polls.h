/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The poll family: one entry of poll_stats for each thread and call, which only that thread writes. */

#define EFAULT 14

struct {
    __uint(type, BPF_MAP_TYPE_HASH);
    __uint(max_entries, 8192);
    __type(key, struct poll_key);
    __type(value, struct poll_stat);
} poll_stats SEC(".maps");

struct {
    __uint(type, BPF_MAP_TYPE_ARRAY);
    __uint(max_entries, 1);
    __type(key, __u32);
    __type(value, struct poll_stat);
} empty_poll SEC(".maps");

/* The call under way of a task that is observed. */
struct poll_now {
    __u64 enter_ns, enter_runtime_ns, asked;
    __u32 zero_timeout, set;
};

struct {
    __uint(type, BPF_MAP_TYPE_TASK_STORAGE);
    __uint(map_flags, BPF_F_NO_PREALLOC);
    __type(key, int);
    __type(value, struct poll_now);
} poll_nows SEC(".maps");

static __always_inline void poll_begin(__u32 kind, __u64 asked, bool zero_timeout, __u32 set)
{
    struct task_struct *task = bpf_get_current_task_btf();
    struct poll_now *call = bpf_task_storage_get(&poll_nows, task, 0, 0);
    /* A task that has storage was wanted before; a cgroup can be left. */
    if (!call || who == WHO_CGROUP) {
        if (!wanted(task->tgid))
            return;
        call = bpf_task_storage_get(&poll_nows, task, 0, BPF_LOCAL_STORAGE_GET_F_CREATE);
        if (!call) {
            add(COUNT_DROPPED_POLLS, 1);
            return;
        }
    }
    __u64 now = bpf_ktime_get_ns();
    call->enter_ns = now;
    call->enter_runtime_ns = running_for(task, now);
    call->asked = asked;
    call->zero_timeout = zero_timeout;
    call->set = set;
}

static __always_inline struct poll_stat *poll_entry(struct task_struct *task, __u32 kind, __u64 first_ns)
{
    struct poll_key key = {.tid = task->pid, .kind = kind};
    struct poll_stat *stat = bpf_map_lookup_elem(&poll_stats, &key);
    if (stat)
        return stat;
    __u32 zero = 0;
    struct poll_stat *empty = bpf_map_lookup_elem(&empty_poll, &zero);
    if (empty)
        bpf_map_update_elem(&poll_stats, &key, empty, BPF_NOEXIST);
    stat = bpf_map_lookup_elem(&poll_stats, &key);
    if (!stat) {
        add(COUNT_DROPPED_POLLS, 1);
        return 0;
    }
    stat->tgid = task->tgid;
    stat->last_cpu = bpf_get_smp_processor_id();
    stat->first_ns = first_ns;
    bpf_get_current_comm(stat->comm, sizeof(stat->comm));
    return stat;
}

static __always_inline void poll_end(__u32 kind, long returned)
{
    struct task_struct *task = bpf_get_current_task_btf();
    struct poll_now *call = bpf_task_storage_get(&poll_nows, task, 0, 0);
    if (!call || !call->enter_ns)
        return;
    __u64 entered = call->enter_ns;
    call->enter_ns = 0;
    struct poll_stat *stat = poll_entry(task, kind, entered);
    if (!stat)
        return;
    __u64 now = bpf_ktime_get_ns();
    __u64 elapsed = now - entered;
    __u64 on_cpu = running_for(task, now) - call->enter_runtime_ns;
    if (on_cpu > elapsed)
        on_cpu = elapsed;
    __u64 interval = 0;
    if (stat->last_exit_ns) {
        interval = entered - stat->last_exit_ns;
        stat->intervals++;
        stat->interval_ns += interval;
        stat->log2_interval_ns[log2_slot(interval, LOG2_SLOTS)]++;
    }
    __u32 cpu = bpf_get_smp_processor_id();
    if (cpu != stat->last_cpu)
        stat->cpu_changes++;
    stat->last_cpu = cpu;
    stat->calls++;
    stat->asked += call->asked;
    stat->zero_timeout += call->zero_timeout;
    stat->set = call->set;
    stat->on_cpu_ns += on_cpu;
    stat->blocked_ns += elapsed - on_cpu;
    if (returned > 0) {
        stat->with_events++;
        stat->events += returned;
        stat->log2_events[log2_slot(returned, 16)]++;
        add(COUNT_POLL_EVENTS, returned);
    } else if (returned == 0) {
        stat->empty++;
    } else {
        stat->failed++;
    }
    add(COUNT_POLL_CALLS, 1);
    if (log_events) {
        struct poll_event *event = bpf_ringbuf_reserve(&poll_log, sizeof(*event), 0);
        if (event) {
            event->enter_ns = entered;
            event->exit_ns = now;
            event->blocked_ns = elapsed - on_cpu;
            event->on_cpu_ns = on_cpu;
            event->interval_ns = interval;
            event->asked = call->asked;
            event->kind = kind;
            event->returned = returned;
            event->cpu = cpu;
            event->tid = task->pid;
            event->tgid = task->tgid;
            bpf_ringbuf_submit(event, BPF_RB_NO_WAKEUP);
        } else {
            add(COUNT_DROPPED_LOG, 1);
        }
    }
    stat->last_exit_ns = now;
}

/* A timeout given by pointer: true when it is there and zero (two words in every ABI used here). */
static __always_inline bool zero_time(unsigned long pointer)
{
    __u64 parts[2];
    if (!pointer || bpf_probe_read_user(parts, sizeof(parts), (void *)pointer))
        return false;
    return !parts[0] && !parts[1];
}

static __always_inline __u64 ones(__u64 word)
{
    word = word - ((word >> 1) & 0x5555555555555555ULL);
    word = (word & 0x3333333333333333ULL) + ((word >> 2) & 0x3333333333333333ULL);
    return ((word + (word >> 4) & 0x0f0f0f0f0f0f0f0fULL) * 0x0101010101010101ULL) >> 56;
}

/* How many descriptors three select sets ask about, of the first 256 (a set is as long as `n` says). */
static __always_inline __u64 select_asked(__u64 n, __u64 read, __u64 write, __u64 except)
{
    __u64 total = 0;
    unsigned long sets[3] = {read, write, except};
#pragma unroll
    for (int s = 0; s < 3; s++) {
#pragma unroll
        for (int w = 0; w < 4; w++) {
            __u64 word;
            if (sets[s] && n > w * 64 && !bpf_probe_read_user(&word, 8, (void *)(sets[s] + w * 8)))
                total += ones(word);
        }
    }
    return total;
}

/* What each call says about itself in its arguments. epoll does not say how many descriptors it watches: the
 * observer asks the set itself, by its descriptor. */
static __always_inline void poll_call(__u32 kind, __u64 a0, __u64 a1, __u64 a2, __u64 a3, __u64 a4)
{
    switch (kind) {
    case POLL_POLL:
        return poll_begin(kind, a1, (int)a2 == 0, 0);
    case POLL_PPOLL:
        return poll_begin(kind, a1, zero_time(a2), 0);
    case POLL_SELECT:
    case POLL_PSELECT6:
        return poll_begin(kind, select_asked(a0, a1, a2, a3), zero_time(a4), 0);
    case POLL_EPOLL_WAIT:
    case POLL_EPOLL_PWAIT:
        return poll_begin(kind, 0, (int)a3 == 0, a0);
    case POLL_EPOLL_PWAIT2:
        return poll_begin(kind, 0, zero_time(a3), a0);
    case POLL_IO_URING_ENTER:
        return poll_begin(kind, a1, a2 == 0, 0);
    }
}

/* First choice: the functions of the calls; no other call pays. Second, where the kernel refuses BPF on functions: the
 * tracepoints of these calls; all calls of the machine then go through the kernel's tracing path, and only these run a
 * program. A tracepoint's arguments begin at its third word, its result is there. */
#define POLL_CALL(name, kind, a0, a1, a2, a3, a4)                                                                     \
    SEC("fentry/__x64_sys_" #name) int poll_enter_##name(__u64 *ctx)                                                  \
    {                                                                                                                  \
        struct pt_regs *regs = (void *)ctx[0];                                                                        \
        poll_call(kind, regs->di, regs->si, regs->dx, regs->r10, regs->r8);                                            \
        return 0;                                                                                                      \
    }                                                                                                                  \
    SEC("fexit/__x64_sys_" #name) int poll_exit_##name(__u64 *ctx)                                                    \
    {                                                                                                                  \
        poll_end(kind, ctx[1]);                                                                                        \
        return 0;                                                                                                      \
    }                                                                                                                  \
    SEC("tracepoint/syscalls/sys_enter_" #name) int point_enter_##name(__u64 *ctx)                                    \
    {                                                                                                                  \
        poll_call(kind, a0, a1, a2, a3, a4);                                                                           \
        return 0;                                                                                                      \
    }                                                                                                                  \
    SEC("tracepoint/syscalls/sys_exit_" #name) int point_exit_##name(__u64 *ctx)                                      \
    {                                                                                                                  \
        poll_end(kind, ctx[2]);                                                                                        \
        return 0;                                                                                                      \
    }

/* A tracepoint has no more words than its call has arguments. */
POLL_CALL(poll, POLL_POLL, ctx[2], ctx[3], ctx[4], 0, 0)
POLL_CALL(ppoll, POLL_PPOLL, ctx[2], ctx[3], ctx[4], 0, 0)
POLL_CALL(select, POLL_SELECT, ctx[2], ctx[3], ctx[4], ctx[5], ctx[6])
POLL_CALL(pselect6, POLL_PSELECT6, ctx[2], ctx[3], ctx[4], ctx[5], ctx[6])
POLL_CALL(epoll_wait, POLL_EPOLL_WAIT, ctx[2], ctx[3], ctx[4], ctx[5], 0)
POLL_CALL(epoll_pwait, POLL_EPOLL_PWAIT, ctx[2], ctx[3], ctx[4], ctx[5], 0)
POLL_CALL(epoll_pwait2, POLL_EPOLL_PWAIT2, ctx[2], ctx[3], ctx[4], ctx[5], 0)
POLL_CALL(io_uring_enter, POLL_IO_URING_ENTER, ctx[2], ctx[3], ctx[4], 0, 0)

/* Last choice, where the trace file system cannot be read either: the two raw tracepoints that run a program at every
 * system call of the machine. */
static __always_inline int kind_of(long number)
{
    switch (number) {
    case 7:
        return POLL_POLL;
    case 23:
        return POLL_SELECT;
    case 232:
        return POLL_EPOLL_WAIT;
    case 270:
        return POLL_PSELECT6;
    case 271:
        return POLL_PPOLL;
    case 281:
        return POLL_EPOLL_PWAIT;
    case 426:
        return POLL_IO_URING_ENTER;
    case 441:
        return POLL_EPOLL_PWAIT2;
    }
    return -1;
}

SEC("tp_btf/sys_enter")
int any_call_enter(__u64 *ctx)
{
    struct pt_regs *regs = (void *)ctx[0];
    int kind = kind_of(ctx[1]);
    if (kind >= 0)
        poll_call(kind, regs->di, regs->si, regs->dx, regs->r10, regs->r8);
    return 0;
}

SEC("tp_btf/sys_exit")
int any_call_exit(__u64 *ctx)
{
    struct pt_regs *regs = (void *)ctx[0];
    int kind = kind_of(regs->orig_ax);
    if (kind >= 0)
        poll_end(kind, ctx[1]);
    return 0;
}
