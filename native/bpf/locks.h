/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Waits for kernel locks (lock:contention_begin/end) and for futexes. A futex wait is the time a task sleeps inside a
 * futex call, until it is woken: sched.h sees it, so calls that need not wait cost nothing. */

#define LCB_F_SPIN 1
#define LCB_F_MUTEX 32

#define SYSCALL_FUTEX 202
#define SYSCALL_FUTEX_WAITV 449
#define SYSCALL_FUTEX_WAIT 455

#define MOST_CPUS 128 /* CPUs with run queues identified by name */

#define FUTEX_WAIT 0
#define FUTEX_LOCK_PI 6
#define FUTEX_WAIT_BITSET 9
#define FUTEX_WAIT_REQUEUE_PI 11
#define FUTEX_LOCK_PI2 13
#define FUTEX_CMD_MASK 0x7f

#define EXACT_STACKS 64 /* of each futex this many waits are sent with their stack, then one in SAMPLED_STACKS */
#define SAMPLED_STACKS 64

struct {
    __uint(type, BPF_MAP_TYPE_STACK_TRACE);
    __uint(max_entries, 8192);
    __uint(key_size, sizeof(__u32));
    __uint(value_size, 16 * sizeof(__u64));
} lock_stacks SEC(".maps");

struct lock_wait {
    __u64 begin_ns, address;
    __u32 flags;
    __s32 stack;
};

struct {
    __uint(type, BPF_MAP_TYPE_HASH);
    __uint(max_entries, 16384);
    __type(key, __u64);
    __type(value, struct lock_wait);
} lock_waits SEC(".maps");

struct {
    __uint(type, BPF_MAP_TYPE_PERCPU_HASH);
    __uint(max_entries, 8192);
    __type(key, struct lock_key);
    __type(value, struct wait_stat);
} lock_stats SEC(".maps");

struct {
    __uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
    __uint(max_entries, 1);
    __type(key, __u32);
    __type(value, struct wait_stat);
} empty_wait SEC(".maps");

struct {
    __uint(type, BPF_MAP_TYPE_HASH);
    __uint(max_entries, 8192);
    __type(key, __u64); /* address of a kernel lock */
    __type(value, struct lock_place);
} lock_places SEC(".maps");

struct {
    __uint(type, BPF_MAP_TYPE_ARRAY);
    __uint(max_entries, MOST_CPUS);
    __type(key, __u32);
    __type(value, __u64); /* address of the CPU's run queue */
} runqueues SEC(".maps");

/* Run queues are per CPU and have no address of their own in BTF: each CPU's threads point to theirs. */
SEC("iter/task")
int find_runqueues(struct bpf_iter__task *ctx)
{
    struct task_struct *task = ctx->task;
    if (!task)
        return 0;
    struct rq *rq = BPF_CORE_READ(task, se.cfs_rq, rq);
    if (!rq)
        return 0;
    __u32 cpu = BPF_CORE_READ(rq, cpu);
    __u64 address = (__u64)rq;
    bpf_map_update_elem(&runqueues, &cpu, &address, BPF_ANY);
    return 0;
}

#define WITHIN(pointer, number)                                                                                        \
    if (pointer && address - (__u64)(pointer) < bpf_core_type_size(*(pointer))) {                                      \
        place.owner = number;                                                                                          \
        place.offset = address - (__u64)(pointer);                                                                     \
    }

/* Dynamic locks have no symbols. Those within what the waiter itself belongs to are identified by their addresses. */
static __always_inline void place_lock(__u64 address)
{
    struct lock_place place = {};
    struct task_struct *task = (void *)bpf_get_current_task();
    /* Read as numbers: the verifier does not subtract pointers. */
    struct mm_struct *mm = BPF_CORE_READ(task, mm);
    struct sighand_struct *sighand = BPF_CORE_READ(task, sighand);
    struct signal_struct *signal = BPF_CORE_READ(task, signal);
    struct files_struct *files = BPF_CORE_READ(task, files);
    WITHIN(mm, OWNER_MM)
    WITHIN(sighand, OWNER_SIGHAND)
    WITHIN(signal, OWNER_SIGNAL)
    WITHIN(files, OWNER_FILES)
    WITHIN(task, OWNER_TASK)
    for (__u32 cpu = 0; cpu < MOST_CPUS && !place.owner; cpu++) {
        __u64 *at = bpf_map_lookup_elem(&runqueues, &cpu);
        if (!at || !*at)
            break;
        struct rq *rq = (void *)*at;
        WITHIN(rq, OWNER_RUNQUEUE)
    }
    if (place.owner)
        bpf_map_update_elem(&lock_places, &address, &place, BPF_ANY);
}

/* Whether it is the lock's first. */
static __always_inline bool count_wait(struct lock_key *key, __u64 wait_ns)
{
    bool first = false;
    struct wait_stat *stat = bpf_map_lookup_elem(&lock_stats, key);
    if (!stat) {
        __u32 zero = 0;
        struct wait_stat *empty = bpf_map_lookup_elem(&empty_wait, &zero);
        if (empty)
            bpf_map_update_elem(&lock_stats, key, empty, BPF_NOEXIST);
        stat = bpf_map_lookup_elem(&lock_stats, key);
        if (!stat) {
            add(COUNT_DROPPED_LOCKS, 1);
            return false;
        }
        first = true;
    }
    stat->count++;
    stat->total_ns += wait_ns;
    if (wait_ns > stat->max_ns)
        stat->max_ns = wait_ns;
    if (~wait_ns > stat->inverse_min_ns)
        stat->inverse_min_ns = ~wait_ns;
    stat->log2_ns[log2_slot(wait_ns, LOG2_SLOTS)]++;
    return first;
}

static __always_inline void log_wait(struct lock_key *key, __u64 now, __u64 wait_ns, __u32 tid, __u32 tgid)
{
    if (!log_events)
        return;
    struct lock_event *event = bpf_ringbuf_reserve(&lock_log, sizeof(*event), 0);
    if (!event) {
        add(COUNT_DROPPED_LOG, 1);
        return;
    }
    event->end_ns = now;
    event->wait_ns = wait_ns;
    event->address = key->address;
    event->flags = key->flags;
    event->stack = key->stack;
    event->tid = tid;
    event->tgid = tgid;
    event->cpu = bpf_get_smp_processor_id();
    event->padding = 0;
    bpf_ringbuf_submit(event, BPF_RB_NO_WAKEUP);
}

/* A spinning wait may interrupt a sleeping one of the same task, and one of a task one of the idle task. */
static __always_inline __u64 wait_slot(__u32 flags, __u32 tid)
{
    if ((flags & LCB_F_SPIN) && !(flags & LCB_F_MUTEX))
        return 1ULL << 63 | bpf_get_smp_processor_id();
    return tid;
}

SEC("tp_btf/contention_begin")
int lock_begin(__u64 *ctx)
{
    __u64 id = bpf_get_current_pid_tgid();
    if (!wanted(id >> 32))
        return 0;
    __u32 flags = ctx[1];
    __u64 slot = wait_slot(flags, id);
    if (bpf_map_lookup_elem(&lock_waits, &slot))
        return 0; /* a mutex begins to wait twice, spinning first: the first counts */
    struct lock_wait wait = {.begin_ns = bpf_ktime_get_ns(), .address = ctx[0], .flags = flags};
    if (is_over(wait.begin_ns))
        return 0;
    wait.stack = bpf_get_stackid(ctx, &lock_stacks, BPF_F_FAST_STACK_CMP | 1);
    if (bpf_map_update_elem(&lock_waits, &slot, &wait, BPF_NOEXIST)) {
        add(COUNT_DROPPED_LOCKS, 1);
        return 0;
    }
    flow_change(FLOW_KERNEL_LOCK, wait.begin_ns, 1);
    return 0;
}

SEC("tp_btf/contention_end")
int lock_end(__u64 *ctx)
{
    __u64 id = bpf_get_current_pid_tgid();
    __u64 slot = 1ULL << 63 | bpf_get_smp_processor_id();
    struct lock_wait *wait = bpf_map_lookup_elem(&lock_waits, &slot);
    if (!wait || wait->address != ctx[0]) {
        slot = (__u32)id;
        wait = bpf_map_lookup_elem(&lock_waits, &slot);
        if (!wait || wait->address != ctx[0])
            return 0;
    }
    __u64 now = bpf_ktime_get_ns();
    if (is_over(now))
        return 0;
    __u64 wait_ns = within(wait->begin_ns, now);
    struct lock_key key = {.address = wait->address, .flags = wait->flags, .stack = wait->stack};
    bpf_map_delete_elem(&lock_waits, &slot);
    flow_change(FLOW_KERNEL_LOCK, now, -1);
    if (!has_begun(now))
        return 0;
    if (count_wait(&key, wait_ns))
        place_lock(key.address);
    log_wait(&key, now, wait_ns, id, id >> 32);
    return 0;
}

struct {
    __uint(type, BPF_MAP_TYPE_HASH);
    __uint(max_entries, 16384);
    __type(key, struct lock_key); /* as of the futex's waits: a libc mutex begins with its futex */
    __type(value, __u64);
} acquisitions SEC(".maps");

#define FIRST_ARGUMENT 112 /* rdi in the registers that a probe sees (struct pt_regs, asm/ptrace.h) */

SEC("uprobe")
int mutex_taken(void *ctx)
{
    __u32 tgid = bpf_get_current_pid_tgid() >> 32;
    if (!wanted(tgid))
        return 0;
    struct lock_key key = {.address = *(__u64 *)(ctx + FIRST_ARGUMENT), .flags = LOCK_FUTEX, .stack = -1, .tgid = tgid};
    __u64 *times = bpf_map_lookup_elem(&acquisitions, &key);
    if (times) {
        __sync_fetch_and_add(times, 1);
        return 0;
    }
    __u64 one = 1;
    if (bpf_map_update_elem(&acquisitions, &key, &one, BPF_NOEXIST))
        add(COUNT_DROPPED_LOCKS, 1);
    return 0;
}

static __always_inline __u32 futex_kind(unsigned long operation)
{
    switch (operation & FUTEX_CMD_MASK) {
    case FUTEX_WAIT:
    case FUTEX_WAIT_BITSET:
    case FUTEX_WAIT_REQUEUE_PI:
        return LOCK_FUTEX;
    case FUTEX_LOCK_PI:
    case FUTEX_LOCK_PI2:
        return LOCK_FUTEX_PI;
    }
    return 0;
}

/* Returns what a task that goes to sleep in this system call waits for: the kind of futex wait, or 0. */
static __always_inline __u32 futex_sleep(long number, unsigned long operation)
{
    switch (number) {
    case SYSCALL_FUTEX:
        return futex_kind(operation);
    case SYSCALL_FUTEX_WAIT:
        return LOCK_FUTEX;
    case SYSCALL_FUTEX_WAITV:
        return LOCK_FUTEXV;
    }
    return 0;
}

/* The sleeper's registers and the top of its stack, from which the observer unwinds the calling point:
 * Debian's libc has no frame pointers, so the kernel cannot. Only a current task's stack can be read here; another's is
 * left to the observer. */
static __always_inline void send_stack(struct pt_regs *regs, struct task_struct *task, __u64 address, __u64 nth,
                                       bool current)
{
    if (nth > EXACT_STACKS && nth % SAMPLED_STACKS)
        return;
    struct futex_stack *sent = bpf_ringbuf_reserve(&lock_log, sizeof(*sent), 0);
    if (!sent) {
        add(COUNT_DROPPED_STACKS, 1);
        return;
    }
    sent->address = address;
    sent->ip = BPF_CORE_READ(regs, ip);
    sent->sp = BPF_CORE_READ(regs, sp);
    sent->bp = BPF_CORE_READ(regs, bp);
    sent->tgid = task->tgid;
    sent->tid = task->pid;
    sent->nth = nth;
    sent->bytes = current ? USER_STACK_BYTES : 0;
    if (current && bpf_probe_read_user(sent->stack, USER_STACK_BYTES, (void *)sent->sp)) {
        sent->bytes = 512; /* near the top of the stack's mapping */
        if (bpf_probe_read_user(sent->stack, 512, (void *)sent->sp))
            sent->bytes = 0;
    }
    bpf_ringbuf_submit(sent, BPF_RB_NO_WAKEUP);
}

/* A task goes to sleep on a futex, or sleeps on one already: returns which one, or 0. */
static __always_inline __u64 futex_begin(struct task_struct *task, struct pt_regs *regs, long number, __u32 *kind,
                                         bool current)
{
    *kind = futex_sleep(number, BPF_CORE_READ(regs, si));
    if (!*kind)
        return 0;
    __u64 address = BPF_CORE_READ(regs, di);
    struct lock_key key = {.address = address, .flags = *kind, .stack = -1, .tgid = task->tgid};
    struct wait_stat *stat = bpf_map_lookup_elem(&lock_stats, &key);
    send_stack(regs, task, address, stat ? stat->count + 1 : 1, current);
    return address;
}

static __always_inline void futex_end(struct task_struct *task, __u64 address, __u32 kind, __u64 now, __u64 wait_ns)
{
    struct lock_key key = {.address = address, .flags = kind, .stack = -1, .tgid = task->tgid};
    if (!has_begun(now))
        return;
    count_wait(&key, wait_ns);
    log_wait(&key, now, wait_ns, task->pid, task->tgid);
}
