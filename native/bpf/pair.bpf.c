/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
 *
 * A scheduler (sched_ext) for the tasks of one command: the task that a CPU runs next is one that shares well with
 * those that its neighbours run now, by the AND of two bitmaps. Tasks of the table have a seat, a bit and a queue each;
 * all other tasks of the command share one queue. Tasks of other commands stay with the kernel's own scheduler.
 *
 * The order is fair: a seat runs once an epoch, and may borrow one turn of the next. The loader recognizes this file by
 * its undefined names: maps, functions of the kernel, and `task_struct__FIELD`, the offset of a field.
 */
#include <linux/bpf.h>
#include <linux/types.h>

#include <bpf/bpf_helpers.h>

#include "pair.h"

#define FIELD(type, task, field) (*(type *)((char *)(task) + (unsigned long)task_struct__##field))
#define PROGRAM(kind, name) SEC(kind "/" #name) int name

struct task_struct;
struct cpumask;

extern const char task_struct__pid[], task_struct__cpus_ptr[];
extern char seats[], table[], state[], neighbours[], cpus[], together[];

extern int scx_bpf_create_dsq(__u64 queue, __s32 node);
extern void scx_bpf_dsq_insert(struct task_struct *task, __u64 queue, __u64 slice, __u64 flags);
extern _Bool scx_bpf_dsq_move_to_local(__u64 queue);
extern __s32 scx_bpf_select_cpu_dfl(struct task_struct *task, __s32 previous, __u64 flags, _Bool *is_idle);
extern __s32 scx_bpf_pick_idle_cpu(const struct cpumask *allowed, __u64 flags);
extern void scx_bpf_kick_cpu(__s32 cpu, __u64 flags);

enum {
    WAKEUP = 1,    /* SCX_ENQ_WAKEUP */
    KICK_IDLE = 1, /* SCX_KICK_IDLE */
    OTHERS = PAIR_SEATS,
    TRIES = 4,
};
#define LOCAL (1ULL << 63 | 2) /* SCX_DSQ_LOCAL */
#define SLICE_NS 5000000ULL

static __always_inline struct pair_state *the_state(void)
{
    __u32 zero = 0;
    return bpf_map_lookup_elem(state, &zero);
}

/* Returns the task's seat, or a negative number. */
static __always_inline int seat_of(struct task_struct *task)
{
    __u32 number = (__u32)FIELD(int, task, pid);
    __u32 *seat = bpf_map_lookup_elem(seats, &number);
    return seat && *seat < PAIR_SEATS ? (int)*seat : -1;
}

/* Without branches: the verifier would follow every way through them. Some clang has no instructions for the compiler's
 * own builtin. */
static __always_inline int first_bit(__u64 bits)
{
    __u64 below = (bits & -bits) - 1; /* as many ones as there are zeros below the first bit */
    /* clang 19 would see through it and read the number from a table, which has no place in a program of this kind. */
    __asm__ volatile("" : "+r"(below));
    below -= below >> 1 & 0x5555555555555555ULL;
    below = (below & 0x3333333333333333ULL) + (below >> 2 & 0x3333333333333333ULL);
    below = (below + (below >> 4)) & 0x0f0f0f0f0f0f0f0fULL;
    return (int)(below * 0x0101010101010101ULL >> 56);
}

/* Swaps neighbouring groups of bits if `turn` has the bit of that size. */
#define SWAP(size, mask)                                                                        \
    do {                                                                                        \
        __u64 all = -(__u64)(turn / (size) & 1);                                                \
        bits = (((bits & (mask)) << (size) | (bits >> (size) & (mask))) & all) | (bits & ~all); \
    } while (0)

/* One of the bits: the order of numbers would make neighbours of its own. Each bit moves to its number XOR a random one. */
static __always_inline int any_bit(__u64 bits)
{
    __u32 turn = bpf_get_prandom_u32() & 63;
    SWAP(1, 0x5555555555555555ULL);
    SWAP(2, 0x3333333333333333ULL);
    SWAP(4, 0x0f0f0f0f0f0f0f0fULL);
    SWAP(8, 0x00ff00ff00ff00ffULL);
    SWAP(16, 0x0000ffff0000ffffULL);
    SWAP(32, 0x00000000ffffffffULL);
    return first_bit(bits) ^ (int)turn;
}

PROGRAM("struct_ops", select_cpu)(unsigned long long *arguments)
{
    struct task_struct *task = (void *)arguments[0];
    _Bool is_idle = 0;
    __s32 cpu = scx_bpf_select_cpu_dfl(task, (__s32)arguments[1], arguments[2], &is_idle);
    /* A task with a seat is left to the CPU's own choice, which may be another one. */
    if (is_idle && seat_of(task) < 0)
        scx_bpf_dsq_insert(task, LOCAL, SLICE_NS, 0);
    return cpu;
}

PROGRAM("struct_ops", enqueue)(unsigned long long *arguments)
{
    struct task_struct *task = (void *)arguments[0];
    __u64 flags = arguments[1];
    struct pair_state *now = the_state();
    int seat = seat_of(task);
    if (seat < 0 || !now) {
        scx_bpf_dsq_insert(task, OTHERS, SLICE_NS, flags);
    } else {
        /* The kernel queues it when this function has returned. */
        scx_bpf_dsq_insert(task, (__u64)seat, SLICE_NS, flags);
        __sync_fetch_and_or(&now->runnable, 1ULL << seat);
    }
    if (!(flags & WAKEUP)) {
        __s32 idle = scx_bpf_pick_idle_cpu(FIELD(const struct cpumask *, task, cpus_ptr), 0);
        if (idle >= 0)
            scx_bpf_kick_cpu(idle, KICK_IDLE);
    }
    return 0;
}

/* Finds the tasks that share well with all that the neighbours run, and those that share badly with any of it. */
static __always_inline int beside(__u32 cpu, __u64 *high, __u64 *low)
{
    struct pair_neighbours *near = bpf_map_lookup_elem(neighbours, &cpu);
    int running = 0;
    *high = ~0ULL;
    *low = 0;
    for (int i = 0; near && i < PAIR_NEIGHBOURS; i++) {
        __u32 other = near->cpu[i];
        if (other == PAIR_NOBODY)
            break;
        struct pair_cpu *beside = bpf_map_lookup_elem(cpus, &other);
        __u32 seat = beside ? beside->seat : PAIR_NOBODY;
        struct pair_row *row = seat < PAIR_SEATS ? bpf_map_lookup_elem(table, &seat) : (void *)0;
        if (!row)
            continue;
        *high &= row->high;
        *low |= row->low;
        running++;
    }
    if (!running)
        *high = 0;
    return running;
}

PROGRAM("struct_ops", dispatch)(unsigned long long *arguments)
{
    __u32 cpu = (__u32)arguments[0];
    struct pair_state *now = the_state();
    struct pair_cpu *own = bpf_map_lookup_elem(cpus, &cpu);
    __u64 high, low, tried = 0;
    if (!now || !own)
        return 0;
    /* Neither tasks with a seat nor others wait for ever. */
    if (own->turn++ & 1 && scx_bpf_dsq_move_to_local(OTHERS))
        return 0;
    beside(cpu, &high, &low);
    for (int i = 0; i < TRIES; i++) {
        __u64 runnable = now->runnable & ~tried;
        if (!runnable)
            break;
        if (!(now->left & runnable)) {
            now->left = now->next;
            now->next = ~0ULL;
        }
        __u64 left = now->left & runnable, good = high & left;
        if (!good)
            good = high & now->next & runnable;
        __u64 from = good;
        if (!from)
            from = left & ~low;
        if (!from)
            from = left;
        if (!from)
            from = runnable;
        int seat = any_bit(from);
        __u64 bit = 1ULL << (seat & 63);
        tried |= bit;
        /* Another CPU has it, or it is not in its queue yet: the bit stays, or no CPU would look for it again. */
        if (!scx_bpf_dsq_move_to_local((__u64)seat))
            continue;
        /* No CPU can queue it anew before: this CPU's lock is held. */
        __sync_fetch_and_and(&now->runnable, ~bit);
        if (now->left & bit)
            __sync_fetch_and_and(&now->left, ~bit);
        else
            __sync_fetch_and_and(&now->next, ~bit);
        __sync_fetch_and_add(&now->dispatched, 1);
        if (good)
            __sync_fetch_and_add(&now->by_table, 1);
        return 0;
    }
    scx_bpf_dsq_move_to_local(OTHERS);
    return 0;
}

PROGRAM("struct_ops", running)(unsigned long long *arguments)
{
    struct task_struct *task = (void *)arguments[0];
    __u32 cpu = bpf_get_smp_processor_id();
    struct pair_cpu *own = bpf_map_lookup_elem(cpus, &cpu);
    int seat = seat_of(task);
    if (own) {
        own->since = bpf_ktime_get_ns();
        own->seat = seat < 0 ? PAIR_NOBODY : (__u32)seat;
    }
    return 0;
}

/* Charges the time for which a task ran beside what its neighbours still run; theirs is charged when they stop. */
PROGRAM("struct_ops", stopping)(unsigned long long *arguments)
{
    __u32 cpu = bpf_get_smp_processor_id();
    struct pair_cpu *own = bpf_map_lookup_elem(cpus, &cpu);
    struct pair_neighbours *near = bpf_map_lookup_elem(neighbours, &cpu);
    if (!own || own->seat >= PAIR_SEATS)
        return 0;
    __u64 end = bpf_ktime_get_ns();
    for (int i = 0; near && i < PAIR_NEIGHBOURS; i++) {
        __u32 other = near->cpu[i];
        if (other == PAIR_NOBODY)
            break;
        struct pair_cpu *beside = bpf_map_lookup_elem(cpus, &other);
        if (!beside || beside->seat >= PAIR_SEATS)
            continue;
        __u64 since = beside->since > own->since ? beside->since : own->since;
        __u32 pair = own->seat * PAIR_SEATS + beside->seat;
        __u64 *sum = bpf_map_lookup_elem(together, &pair);
        if (sum && end > since)
            __sync_fetch_and_add(sum, end - since);
    }
    own->seat = PAIR_NOBODY;
    return 0;
}

PROGRAM("struct_ops.s", init)(unsigned long long *arguments)
{
    for (int queue = 0; queue <= OTHERS; queue++) {
        int failed = scx_bpf_create_dsq((__u64)queue, -1);
        if (failed)
            return failed;
    }
    return 0;
}
