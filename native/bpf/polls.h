/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The poll family: a row for each thread and call, which only that thread writes. It is found by a seat, in a table of
 * our own: an array costs a poll a few instructions where a hash or a task's storage costs a hundred. */

#define EFAULT 14
#define SEATS_LOG2 14
#define SEAT_TRIES 8
#define POLL_ROWS 8192
#define NOT_KNOWN (~0ULL)

struct poll_seat {
    __u64 owner; /* thread << 32 | kind + 1; 0: free. A seat once taken is never given back */
    __u32 row;   /* + 1; 0: none yet */
    __u32 padding;
};

struct {
    __uint(type, BPF_MAP_TYPE_ARRAY);
    __uint(max_entries, 1 << SEATS_LOG2);
    __type(key, __u32);
    __type(value, struct poll_seat);
} poll_seats SEC(".maps");

struct {
    __uint(type, BPF_MAP_TYPE_ARRAY);
    __uint(max_entries, POLL_ROWS);
    __type(key, __u32);
    __type(value, struct poll_stat);
} poll_stats SEC(".maps");

struct {
    __uint(type, BPF_MAP_TYPE_ARRAY);
    __uint(max_entries, 1);
    __type(key, __u32);
    __type(value, __u32);
} poll_rows_used SEC(".maps");

static __always_inline struct poll_seat *poll_seat(__u64 owner, bool take)
{
    __u32 first = owner * 0x9e3779b97f4a7c15ULL >> (64 - SEATS_LOG2);
#pragma unroll
    for (int i = 0; i < SEAT_TRIES; i++) {
        __u32 index = (first + i) & ((1 << SEATS_LOG2) - 1);
        struct poll_seat *seat = bpf_map_lookup_elem(&poll_seats, &index);
        if (!seat || seat->owner == owner)
            return seat;
        if (!seat->owner) {
            if (!take)
                return 0;
            if (!__sync_val_compare_and_swap(&seat->owner, 0, owner))
                return seat;
        }
    }
    return 0;
}

static __always_inline __u64 poll_owner(struct task_struct *task, __u32 kind)
{
    return (__u64)task->pid << 32 | (kind + 1);
}

static __always_inline struct poll_stat *poll_row(struct task_struct *task, __u32 kind)
{
    struct poll_seat *seat = poll_seat(poll_owner(task, kind), false);
    if (!seat || !seat->row)
        return 0;
    __u32 row = seat->row - 1;
    return bpf_map_lookup_elem(&poll_stats, &row);
}

/* Returns the row of a thread that has none, or has the number of an earlier thread. */
static __always_inline struct poll_stat *poll_new_row(struct task_struct *task, __u32 kind)
{
    struct poll_seat *seat = poll_seat(poll_owner(task, kind), true);
    if (!seat)
        return 0;
    if (!seat->row) {
        __u32 zero = 0;
        __u32 *used = bpf_map_lookup_elem(&poll_rows_used, &zero);
        if (!used)
            return 0;
        __u32 row = __sync_fetch_and_add(used, 1);
        if (row >= POLL_ROWS)
            return 0;
        seat->row = row + 1;
    }
    __u32 row = seat->row - 1;
    struct poll_stat *stat = bpf_map_lookup_elem(&poll_stats, &row);
    if (!stat)
        return 0;
    stat->tid = task->pid;
    stat->kind = kind;
    stat->tgid = task->tgid;
    stat->started_ns = task->start_time;
    stat->last_cpu = bpf_get_smp_processor_id();
    stat->row = row;
    if (log_events)
        return_unknown(stat);
    bpf_probe_read_kernel(stat->comm, sizeof(stat->comm), task->comm);
    return stat;
}

/* The row of the call that begins, if it counts. */
static __always_inline struct poll_stat *poll_begin(__u32 kind, __u64 requested, __s64 timeout_ns, __u32 set)
{
    struct task_struct *task = bpf_get_current_task_btf();
    struct poll_stat *stat = poll_row(task, kind);
    /* A thread that has a row was observed before; a cgroup can be left. */
    if (!stat || stat->started_ns != task->start_time || who == WHO_CGROUP) {
        if (!wanted(task->tgid))
            return 0;
        if (!stat || stat->started_ns != task->start_time)
            stat = poll_new_row(task, kind);
        if (!stat) {
            add(COUNT_DROPPED_POLLS, 1);
            return 0;
        }
    }
    __u64 now = bpf_ktime_get_ns();
    if (is_over(now))
        return 0;
    stat->enter_ns = now;
    stat->enter_runtime_ns = running_for(task, now);
    stat->requested = requested;
    stat->timeout_ns = timeout_ns;
    stat->set = set;
    return stat;
}

static __always_inline void poll_end(__u32 kind, long returned)
{
    struct task_struct *task = bpf_get_current_task_btf();
    struct poll_stat *stat = poll_row(task, kind);
    if (!stat || !stat->enter_ns || stat->started_ns != task->start_time)
        return;
    __u64 now = bpf_ktime_get_ns();
    if (is_over(now))
        return;
    __u64 entered = stat->enter_ns;
    stat->enter_ns = 0;
    if (!has_begun(now))
        return;
    if (entered < control.begin_ns)
        entered = control.begin_ns;
    if (!stat->first_ns)
        stat->first_ns = entered;
    __u64 elapsed = now - entered;
    __u64 on_cpu = stat->enter_runtime_ns == NOT_KNOWN ? 0 : running_for(task, now) - stat->enter_runtime_ns;
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
    stat->requested_total += stat->requested;
    stat->zero_timeout += !stat->timeout_ns;
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
        int again = left_over(kind, stat, task->nvcsw, returned);
        if (again != NOT_COMPARED)
            stat->again += again;
        else
            stat->not_compared += returned;
        struct poll_event *event = bpf_ringbuf_reserve(&poll_log, sizeof(*event), 0);
        if (event) {
            event->enter_ns = entered;
            event->exit_ns = now;
            event->blocked_ns = elapsed - on_cpu;
            event->on_cpu_ns = on_cpu;
            event->interval_ns = interval;
            event->timeout_ns = stat->timeout_ns;
            event->requested = stat->requested;
            event->kind = kind;
            event->returned = returned;
            event->again = again;
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

#define WITHOUT_LIMIT (-1)
#define MOST_SECONDS (1ULL << 33) /* in nanoseconds still a signed word */

/* A timeout in milliseconds. */
static __always_inline __s64 milliseconds(int timeout)
{
    return timeout < 0 ? WITHOUT_LIMIT : timeout * 1000000LL;
}

/* Reads a timeout given by pointer (two words in every ABI used here): seconds, and parts of `part_ns` of one. If it
 * cannot be read the call fails. */
static __always_inline __s64 timeout_at(unsigned long pointer, __u64 part_ns)
{
    __u64 parts[2];
    if (!pointer || bpf_probe_read_user(parts, sizeof(parts), (void *)pointer) || parts[0] >= MOST_SECONDS)
        return WITHOUT_LIMIT;
    return parts[0] * 1000000000ULL + (__u32)parts[1] * part_ns;
}

/* Returns how many descriptors three select sets contain, of the first 256 (a set is as long as `n` specifies). */
static __always_inline __u64 select_descriptors(__u64 n, __u64 read, __u64 write, __u64 except)
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

/* Reads each call's arguments. epoll's do not contain how many descriptors it watches: the observer reads the set
 * itself, by its descriptor. */
static __always_inline struct poll_stat *poll_arguments(__u32 kind, __u64 a0, __u64 a1, __u64 a2, __u64 a3, __u64 a4)
{
    switch (kind) {
    case POLL_POLL:
        return poll_begin(kind, a1, milliseconds(a2), 0);
    case POLL_PPOLL:
        return poll_begin(kind, a1, timeout_at(a2, 1), 0);
    case POLL_SELECT:
        return poll_begin(kind, select_descriptors(a0, a1, a2, a3), timeout_at(a4, 1000), 0);
    case POLL_PSELECT6:
        return poll_begin(kind, select_descriptors(a0, a1, a2, a3), timeout_at(a4, 1), 0);
    case POLL_EPOLL_WAIT:
    case POLL_EPOLL_PWAIT:
        return poll_begin(kind, 0, milliseconds(a3), a0);
    case POLL_EPOLL_PWAIT2:
        return poll_begin(kind, 0, timeout_at(a3, 1), a0);
    case POLL_IO_URING_ENTER:
        return poll_begin(kind, a1, a2 == 0 ? 0 : WITHOUT_LIMIT, 0);
    }
    return 0;
}

static __always_inline void poll_call(__u32 kind, __u64 a0, __u64 a1, __u64 a2, __u64 a3, __u64 a4)
{
    struct poll_stat *stat = poll_arguments(kind, a0, a1, a2, a3, a4);
    if (log_events && stat)
        return_expected(kind, stat, bpf_get_current_task_btf()->nvcsw, a0, a1, a2, a3);
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

/* A task that sleeps in a poll since before the observation. Its memory cannot be read here: of its request, only the
 * arguments themselves are known. */
static __always_inline void poll_found(struct task_struct *task, __u64 now)
{
    struct pt_regs *regs = (void *)bpf_task_pt_regs(task);
    int kind = kind_of(BPF_CORE_READ(regs, orig_ax));
    if (kind < 0 || poll_row(task, kind))
        return;
    struct poll_stat *stat = poll_new_row(task, kind);
    if (!stat) {
        add(COUNT_DROPPED_POLLS, 1);
        return;
    }
    bool counted = kind == POLL_POLL || kind == POLL_PPOLL;
    bool timed = kind == POLL_POLL || kind == POLL_EPOLL_WAIT || kind == POLL_EPOLL_PWAIT;
    stat->requested = counted ? BPF_CORE_READ(regs, si) : 0;
    stat->timeout_ns = timed ? milliseconds(counted ? BPF_CORE_READ(regs, dx) : BPF_CORE_READ(regs, r10)) : WITHOUT_LIMIT;
    bool epolled = kind == POLL_EPOLL_WAIT || kind == POLL_EPOLL_PWAIT || kind == POLL_EPOLL_PWAIT2;
    stat->set = epolled ? BPF_CORE_READ(regs, di) : 0;
    if (log_events)
        return_expected(kind, stat, NOT_KNOWN, BPF_CORE_READ(regs, di), BPF_CORE_READ(regs, si),
                        BPF_CORE_READ(regs, dx), BPF_CORE_READ(regs, r10));
    stat->enter_runtime_ns = NOT_KNOWN;
    stat->enter_ns = now;
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
