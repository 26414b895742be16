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

static __always_inline void poll_begin(__u32 kind, __u64 asked, bool zero_timeout)
{
    __u64 id = bpf_get_current_pid_tgid();
    if (!wanted(id >> 32))
        return;
    struct poll_key key = {.tid = id, .kind = kind};
    struct poll_stat *stat = bpf_map_lookup_elem(&poll_stats, &key);
    if (!stat) {
        __u32 zero = 0;
        struct poll_stat *empty = bpf_map_lookup_elem(&empty_poll, &zero);
        if (empty)
            bpf_map_update_elem(&poll_stats, &key, empty, BPF_NOEXIST);
        stat = bpf_map_lookup_elem(&poll_stats, &key);
        if (!stat) {
            add(COUNT_DROPPED_POLLS, 1);
            return;
        }
        stat->tgid = id >> 32;
        stat->last_cpu = bpf_get_smp_processor_id();
        stat->first_ns = bpf_ktime_get_ns();
        bpf_get_current_comm(stat->comm, sizeof(stat->comm));
    }
    struct task_struct *task = bpf_get_current_task_btf();
    __u64 now = bpf_ktime_get_ns();
    stat->enter_ns = now;
    stat->enter_runtime_ns = running_for(task, now);
    stat->enter_asked = asked;
    stat->enter_zero_timeout = zero_timeout;
}

static __always_inline void poll_end(__u32 kind, long returned)
{
    __u64 id = bpf_get_current_pid_tgid();
    struct poll_key key = {.tid = id, .kind = kind};
    struct poll_stat *stat = bpf_map_lookup_elem(&poll_stats, &key);
    if (!stat || !stat->enter_ns)
        return;
    struct task_struct *task = bpf_get_current_task_btf();
    __u64 now = bpf_ktime_get_ns();
    __u64 elapsed = now - stat->enter_ns;
    __u64 on_cpu = running_for(task, now) - stat->enter_runtime_ns;
    if (on_cpu > elapsed)
        on_cpu = elapsed;
    __u64 interval = 0;
    if (stat->last_exit_ns) {
        interval = stat->enter_ns - stat->last_exit_ns;
        stat->intervals++;
        stat->interval_ns += interval;
        stat->log2_interval_ns[log2_slot(interval, LOG2_SLOTS)]++;
    }
    __u32 cpu = bpf_get_smp_processor_id();
    if (cpu != stat->last_cpu)
        stat->cpu_changes++;
    stat->last_cpu = cpu;
    stat->calls++;
    stat->asked += stat->enter_asked;
    stat->zero_timeout += stat->enter_zero_timeout;
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
            event->enter_ns = stat->enter_ns;
            event->exit_ns = now;
            event->blocked_ns = elapsed - on_cpu;
            event->on_cpu_ns = on_cpu;
            event->interval_ns = interval;
            event->asked = stat->enter_asked;
            event->kind = kind;
            event->returned = returned;
            event->cpu = cpu;
            event->tid = (__u32)id;
            event->tgid = id >> 32;
            bpf_ringbuf_submit(event, BPF_RB_NO_WAKEUP);
        } else {
            add(COUNT_DROPPED_LOG, 1);
        }
    }
    stat->last_exit_ns = now;
    stat->enter_ns = 0;
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
static __always_inline __u64 select_asked(struct pt_regs *regs)
{
    __u64 total = 0;
    unsigned long sets[3] = {regs->si, regs->dx, regs->r10};
#pragma unroll
    for (int s = 0; s < 3; s++) {
#pragma unroll
        for (int w = 0; w < 4; w++) {
            __u64 word;
            if (sets[s] && regs->di > w * 64 && !bpf_probe_read_user(&word, 8, (void *)(sets[s] + w * 8)))
                total += ones(word);
        }
    }
    return total;
}

#define POLL_CALL(name, kind, asked_expression, zero_expression)                                                      \
    SEC("fentry/__x64_sys_" #name) int poll_enter_##name(__u64 *ctx)                                                  \
    {                                                                                                                  \
        struct pt_regs *regs = (void *)ctx[0];                                                                        \
        poll_begin(kind, asked_expression, zero_expression);                                                           \
        return 0;                                                                                                      \
    }                                                                                                                  \
    SEC("fexit/__x64_sys_" #name) int poll_exit_##name(__u64 *ctx)                                                    \
    {                                                                                                                  \
        poll_end(kind, ctx[1]);                                                                                        \
        return 0;                                                                                                      \
    }

/* epoll and io_uring do not say in the call how many descriptors they watch. */
POLL_CALL(poll, POLL_POLL, regs->si, (int)regs->dx == 0)
POLL_CALL(ppoll, POLL_PPOLL, regs->si, zero_time(regs->dx))
POLL_CALL(select, POLL_SELECT, select_asked(regs), zero_time(regs->r8))
POLL_CALL(pselect6, POLL_PSELECT6, select_asked(regs), zero_time(regs->r8))
POLL_CALL(epoll_wait, POLL_EPOLL_WAIT, 0, (int)regs->r10 == 0)
POLL_CALL(epoll_pwait, POLL_EPOLL_PWAIT, 0, (int)regs->r10 == 0)
POLL_CALL(epoll_pwait2, POLL_EPOLL_PWAIT2, 0, zero_time(regs->r10))
POLL_CALL(io_uring_enter, POLL_IO_URING_ENTER, regs->si, regs->dx == 0)

/* Where fentry is refused, or a system call's function is not there to attach to: the two raw tracepoints
 * that see every system call of the machine. */
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
    switch (kind_of(ctx[1])) {
    case POLL_POLL:
        poll_begin(POLL_POLL, regs->si, (int)regs->dx == 0);
        break;
    case POLL_PPOLL:
        poll_begin(POLL_PPOLL, regs->si, zero_time(regs->dx));
        break;
    case POLL_SELECT:
        poll_begin(POLL_SELECT, select_asked(regs), zero_time(regs->r8));
        break;
    case POLL_PSELECT6:
        poll_begin(POLL_PSELECT6, select_asked(regs), zero_time(regs->r8));
        break;
    case POLL_EPOLL_WAIT:
    case POLL_EPOLL_PWAIT:
        poll_begin(kind_of(ctx[1]), 0, (int)regs->r10 == 0);
        break;
    case POLL_EPOLL_PWAIT2:
        poll_begin(POLL_EPOLL_PWAIT2, 0, zero_time(regs->r10));
        break;
    case POLL_IO_URING_ENTER:
        poll_begin(POLL_IO_URING_ENTER, regs->si, regs->dx == 0);
        break;
    }
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
