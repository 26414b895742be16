/* SPDX-License-Identifier: GPL-2.0-or-later
 *
 * The callbacks of memory accesses. Those of plain loads and stores run for every access of the guest: a few
 * instructions if the filter drops it.
 */
#include "engine.h"
#include "first_level.h"
#include "record.h"

/* meminfo bits of every QEMU so far: MemOp from bit 4 or 5 on, with the size in its low three bits; rw from bit 16 on.
 * Bit 4 is 0 where it is the mode's, since x86 has fewer than 16 modes. So four bits give the size of either. */
enum { SIZE_LOW = 4, SIZE_MASK = 15 };

int access_init(void)
{
    const int size_low = engine_size_low();
    if (size_low < 0) {
        tap_fail("this QEMU describes memory accesses in a way the tap does not know: use QEMU 7.2, 10.0 or 11.1");
        return -1;
    }
    for (unsigned bits = 0; bits <= SIZE_MASK; bits++) {
        tap.size_log2[bits] = bits >> (size_low - SIZE_LOW) & 7;
        const unsigned bytes = 1u << tap.size_log2[bits];
        tap.room[bits] = bytes > 64 ? 0 : 64 - bytes;
    }
    return 0;
}

static inline unsigned size_of(qemu_plugin_meminfo_t info) { return 1u << tap.size_log2[info >> SIZE_LOW & SIZE_MASK]; }

/* Shorter to look up than to shift. */
static inline uint64_t solo_room_of(qemu_plugin_meminfo_t info) { return tap.room[info >> SIZE_LOW & SIZE_MASK]; }

/* QEMU 7.2 mistakes the direction that a callback was registered for, so every one registers for both and looks
 * itself. */
static inline int stores(qemu_plugin_meminfo_t info) { return info >> 16 & QEMU_PLUGIN_MEM_W; }
static inline int loads(qemu_plugin_meminfo_t info) { return info >> 16 & QEMU_PLUGIN_MEM_R; }

static inline struct vcpu *vcpu_of(unsigned index) { return &tap_vcpus[index]; }

/* Before the window's start a store of the kernel matters only if it changes the current task. */
static void follow_task(struct vcpu *v, qemu_plugin_meminfo_t info, uint64_t vaddr)
{
    const uint64_t line_in_page = 4095 & ~(uint64_t)(tap.line_bytes - 1);
    if ((vaddr ^ v->watched_line << tap.line_log2) & line_in_page)
        return;
    const uint64_t page = softtlb_page(v, info, vaddr);
    if (page != NO_PAGE)
        tasks_stored(v, page << 12 | (vaddr & 4095));
}

/* QEMU 7.2 forgets to withdraw the callbacks of an instruction that ended in an exception: what helpers of the kernel
 * store next (a frame, saved registers) comes in the user instruction's name. User mode has no such addresses. */
static inline int of_other_mode(int kernel, uint64_t vaddr) { return !kernel && vaddr >> 63; }

/* 1 if the access may be recorded. */
static int enter(struct vcpu *v, qemu_plugin_meminfo_t info, int kernel, uint64_t vaddr, int store)
{
    if (unlikely(of_other_mode(kernel, vaddr)))
        return 0;
    if (attend(v, kernel))
        return 1;
    if (v->attention & ATTEND_PENDING && kernel && store)
        follow_task(v, info, vaddr);
    if (v->attention & ATTEND_SKIP && !kernel && !(v->attention & ATTEND_CLOSED)) {
        __atomic_fetch_add(&tap.control->skipped, 1, __ATOMIC_RELAXED);
        if (store) {
            v->task->last_store = vaddr;
            v->task->last_store_page = softtlb_page(v, info, vaddr);
        }
    }
    return 0;
}

static __attribute__((noinline)) void slow(struct vcpu *v, struct nm_insn *insn, qemu_plugin_meminfo_t info,
                                           uint64_t vaddr, enum nm_kind kind, int kernel)
{
    if (!enter(v, info, kernel, vaddr, kind != NM_LOAD))
        return;
    reference(v, insn, info, vaddr, size_of(info), kind);
}

static inline __attribute__((always_inline)) void load(unsigned index, qemu_plugin_meminfo_t info, uint64_t vaddr,
                                                       struct nm_insn *insn, int kernel)
{
    struct vcpu *v = vcpu_of(index);
    struct filter_entry *e = filter_set(v, vaddr);
    if (likely(vaddr - e->load_from <= tap.line_bytes - size_of(info))) {
        insn->load_hits++;
        v->loads[kernel]++;
        return;
    }
    slow(v, insn, info, vaddr, NM_LOAD, kernel);
}

static inline __attribute__((always_inline)) void store(unsigned index, qemu_plugin_meminfo_t info, uint64_t vaddr,
                                                        struct nm_insn *insn, int kernel)
{
    struct vcpu *v = vcpu_of(index);
    struct filter_entry *e = filter_set(v, vaddr);
    uint64_t into = vaddr - e->store_from;
    unsigned size = size_of(info);
    if (likely(into <= tap.line_bytes - size)) {
        e->written |= (size >= 64 ? ~0ULL : (1ULL << size) - 1) << into;
        insn->store_hits++;
        v->stores[kernel]++;
        return;
    }
    slow(v, insn, info, vaddr, NM_STORE, kernel);
}

static inline __attribute__((always_inline)) void solo_hit(struct vcpu *v, struct nm_insn *insn, int store, int kernel)
{
    if (store) {
        insn->store_hits++;
        v->stores[kernel]++;
    } else {
        insn->load_hits++;
        v->loads[kernel]++;
    }
}

static inline struct filter_entry *solo_entry(struct vcpu *v, uint64_t vaddr)
{
    _Static_assert(sizeof(struct filter_entry) == 1u << (SOLO_LINE_LOG2 - 1), "an entry is half as long as a line");
    return (void *)((char *)v->data + (vaddr >> 1 & tap.solo_mask));
}

static inline uint64_t solo_line(uint64_t vaddr) { return vaddr & ~(uint64_t)((1u << SOLO_LINE_LOG2) - 1); }

static inline uint64_t solo_offset(uint64_t vaddr, uint64_t page) { return page << 12 | (vaddr & 4095); }

/* 1 if there is more to an access than that the filter did not drop it. */
static inline int solo_is_special(const struct vcpu *v, uint64_t vaddr, uint64_t page, uint64_t room, int kernel)
{
    return v->attention || v->aside.valid || page == NO_PAGE ||
           (kernel && solo_offset(vaddr, page) >> SOLO_LINE_LOG2 == v->watched_line) ||
           (vaddr & ((1u << SOLO_LINE_LOG2) - 1)) > room || of_other_mode(kernel, vaddr);
}

/* References of the callbacks below that the filter did not drop: the whole of `slow`, but for what seldom is. */
static inline __attribute__((always_inline)) void solo_missed(qemu_plugin_meminfo_t info, uint64_t vaddr,
                                                              struct nm_insn *insn, int store, int kernel)
{
    struct vcpu *v = &tap_vcpus[0];
    const enum nm_kind kind = store ? NM_STORE : NM_LOAD;
    const uint64_t page = softtlb_known(v, vaddr);
    if (unlikely(solo_is_special(v, vaddr, page, solo_room_of(info), kernel) || !record_is_ready(v, kernel))) {
        slow(v, insn, info, vaddr, kind, kernel);
        return;
    }
    record_write(v, v->records + v->used, insn, vaddr, size_of(info), kind, flags_of(insn, kind, kernel), page, 0);
    /* The bytes written matter to the sharers of the line. */
    struct filter_entry *e = solo_entry(v, vaddr);
    const uint64_t from = solo_line(vaddr);
    if (store)
        e->store_from = from;
    else if (e->load_from != from)
        e->store_from = NOWHERE;
    e->load_from = from;
    e->line = solo_offset(vaddr, page) >> SOLO_LINE_LOG2;
}

/* The filter's line is this one from here on. */
static inline void solo_remember(struct vcpu *v, uint64_t vaddr, uint64_t page, int stored)
{
    const uint64_t from = solo_line(vaddr), line = solo_offset(vaddr, page) >> SOLO_LINE_LOG2;
    *solo_entry(v, vaddr) = (struct filter_entry){from, stored ? from : NOWHERE, 0, line};
}

/* Sends a line that is not there, or a use that is new. */
static __attribute__((noinline)) void solo_send(qemu_plugin_meminfo_t info, uint64_t vaddr, struct nm_insn *insn,
                                                int store, uint64_t page, unsigned word, int stored, int kernel)
{
    struct vcpu *v = &tap_vcpus[0];
    const enum nm_kind kind = store ? NM_STORE : NM_LOAD;
    solo_remember(v, vaddr, page, stored);
    record_send(v, insn, vaddr, size_of(info), kind, flags_of(insn, kind, kernel), page, word);
}

/* As above, where the tap runs the first level: much of it hits there, and changes no more than its set's order. */
static inline __attribute__((always_inline)) void
solo_first_level(qemu_plugin_meminfo_t info, uint64_t vaddr, struct nm_insn *insn, int store, int kernel)
{
    struct vcpu *v = &tap_vcpus[0];
    const uint64_t page = softtlb_known(v, vaddr);
    if (unlikely(solo_is_special(v, vaddr, page, solo_room_of(info), kernel))) {
        slow(v, insn, info, vaddr, store ? NM_STORE : NM_LOAD, kernel);
        return;
    }
    const struct first_level_use use = first_level_use(&v->first_data, vaddr, page, store);
    if (use.sent) {
        solo_send(info, vaddr, insn, store, page, use.word, use.stored, kernel);
        return;
    }
    solo_hit(v, insn, store, kernel);
    solo_remember(v, vaddr, page, use.stored);
}

/* With the arguments of a callback, so that one goes on to it as it is. */
#define OUT_OF_LINE(name, what, store, kernel)                                                                         \
    static __attribute__((noipa)) void name(unsigned index, qemu_plugin_meminfo_t info, uint64_t vaddr, void *insn)    \
    {                                                                                                                  \
        (void)index;                                                                                                   \
        what(info, vaddr, insn, store, kernel);                                                                        \
    }
OUT_OF_LINE(missed_load_user, solo_missed, 0, USER)
OUT_OF_LINE(missed_load_kernel, solo_missed, 0, KERNEL)
OUT_OF_LINE(missed_store_user, solo_missed, 1, USER)
OUT_OF_LINE(missed_store_kernel, solo_missed, 1, KERNEL)
OUT_OF_LINE(level_load_user, solo_first_level, 0, USER)
OUT_OF_LINE(level_load_kernel, solo_first_level, 0, KERNEL)
OUT_OF_LINE(level_store_user, solo_first_level, 1, USER)
OUT_OF_LINE(level_store_kernel, solo_first_level, 1, KERNEL)

/* A plain load or store when no other vCPU shares. */
static inline __attribute__((always_inline)) void solo(unsigned index, qemu_plugin_meminfo_t info, uint64_t vaddr,
                                                       void *insn, int store, int kernel, qemu_plugin_mem_cb_t missed)
{
    struct vcpu *v = &tap_vcpus[0];
    const struct filter_entry *e = solo_entry(v, vaddr);
    if (unlikely(vaddr - (store ? e->store_from : e->load_from) > solo_room_of(info)))
        missed(index, info, vaddr, insn);
    else
        solo_hit(v, insn, store, kernel);
}

static void part(unsigned index, qemu_plugin_meminfo_t info, uint64_t vaddr, struct nm_insn *insn, int is_store,
                 int kernel)
{
    struct vcpu *v = vcpu_of(index);
    if (!enter(v, info, kernel, vaddr, is_store))
        return;
    enum nm_kind kind = !is_store ? NM_LOAD : insn->flags & NM_I_NT ? NM_NT_STORE : NM_STORE;
    reference_part(v, insn, info, vaddr, size_of(info), kind, is_store);
}

/* Handles a part in a line that the filter holds, and which goes on with nothing that was sent, or begins anew. */
static inline __attribute__((always_inline)) void solo_part(qemu_plugin_meminfo_t info, uint64_t vaddr,
                                                            struct nm_insn *insn, int kernel)
{
    struct vcpu *v = &tap_vcpus[0];
    const int store = stores(info) != 0;
    const unsigned size = size_of(info);
    const struct filter_entry *e = solo_entry(v, vaddr);
    const uint64_t into = vaddr - (store ? e->store_from : e->load_from);
    const int continued = v->wide.insn == insn && v->wide.store == store && v->wide.end == vaddr &&
                          v->wide.execution == insn->executions;
    if (unlikely(into > solo_room_of(info) || (continued && (!into || v->wide.record)) ||
                 insn->flags & NM_I_NT)) {
        part(0, info, vaddr, insn, store, kernel);
        return;
    }
    if (!continued) {
        v->wide.insn = insn;
        v->wide.execution = insn->executions;
        v->wide.store = store;
        v->wide.record = NULL;
        solo_hit(v, insn, store, kernel);
    }
    v->wide.end = vaddr + size;
}

/* lock cmpxchg8b or 16b: two loads, and two stores if it succeeds; one record, at its first load. */
static void pair(unsigned index, uint64_t vaddr, struct nm_insn *insn, qemu_plugin_meminfo_t info, unsigned bytes,
                 int kernel)
{
    struct vcpu *v = vcpu_of(index);
    if (vaddr & (bytes - 1) || !enter(v, info, kernel, vaddr, 1))
        return;
    reference(v, insn, info, vaddr, bytes, NM_ATOMIC);
}

#define CALLBACK(name, call)                                                                                           \
    static void name##_user(unsigned index, qemu_plugin_meminfo_t info, uint64_t vaddr, void *insn)                    \
    {                                                                                                                  \
        const int kernel = USER;                                                                                       \
        call;                                                                                                          \
    }                                                                                                                  \
    static void name##_kernel(unsigned index, qemu_plugin_meminfo_t info, uint64_t vaddr, void *insn)                  \
    {                                                                                                                  \
        const int kernel = KERNEL;                                                                                     \
        call;                                                                                                          \
    }

CALLBACK(on_plain, if (stores(info)) store(index, info, vaddr, insn, kernel); else load(index, info, vaddr, insn, kernel))
CALLBACK(on_solo_part, (void)index; solo_part(info, vaddr, insn, kernel))
CALLBACK(on_part, part(index, info, vaddr, insn, stores(info) != 0, kernel))
CALLBACK(on_atomic, if (stores(info)) slow(vcpu_of(index), insn, info, vaddr, NM_ATOMIC, kernel))
CALLBACK(on_pair_8, if (loads(info)) pair(index, vaddr, insn, info, 8, kernel))
CALLBACK(on_pair_16, if (loads(info)) pair(index, vaddr, insn, info, 16, kernel))
CALLBACK(on_nt, if (stores(info)) slow(vcpu_of(index), insn, info, vaddr, NM_NT_STORE, kernel);
         else load(index, info, vaddr, insn, kernel))

/* Callbacks of instructions that may do either, and of those of user mode that do one alone. */
#define SOLO_CALLBACK(name, is_store, kernel, missed, mode)                                                            \
    static void name(unsigned index, qemu_plugin_meminfo_t info, uint64_t vaddr, void *insn)                           \
    {                                                                                                                  \
        if (is_store)                                                                                                  \
            solo(index, info, vaddr, insn, 1, kernel, missed##_store_##mode);                                          \
        else                                                                                                           \
            solo(index, info, vaddr, insn, 0, kernel, missed##_load_##mode);                                           \
    }
#define SOLO_CALLBACKS(on, missed)                                                                                     \
    SOLO_CALLBACK(on##_user, stores(info), USER, missed, user)                                                         \
    SOLO_CALLBACK(on##_kernel, stores(info), KERNEL, missed, kernel)                                                   \
    SOLO_CALLBACK(on##_load, 0, USER, missed, user)                                                                    \
    SOLO_CALLBACK(on##_store, 1, USER, missed, user)
SOLO_CALLBACKS(on_solo, missed)
SOLO_CALLBACKS(on_level, level)

/* Calls and returns: such an access, and then what a call's store or a return's load shows of the stack. */
#define STACK_CALLBACKS(on, mode, kernel)                                                                              \
    static void on##_call_##mode(unsigned index, qemu_plugin_meminfo_t info, uint64_t vaddr, void *insn)               \
    {                                                                                                                  \
        on##_##mode(index, info, vaddr, insn);                                                                         \
        if (stores(info) && !of_other_mode(kernel, vaddr))                                                             \
            contexts_call(vcpu_of(index), insn, kernel, vaddr);                                                        \
    }                                                                                                                  \
    static void on##_return_##mode(unsigned index, qemu_plugin_meminfo_t info, uint64_t vaddr, void *insn)             \
    {                                                                                                                  \
        on##_##mode(index, info, vaddr, insn);                                                                         \
        if (loads(info) && !of_other_mode(kernel, vaddr))                                                              \
            contexts_return(vcpu_of(index), kernel, vaddr);                                                            \
    }
STACK_CALLBACKS(on_plain, user, USER)
STACK_CALLBACKS(on_plain, kernel, KERNEL)
STACK_CALLBACKS(on_solo, user, USER)
STACK_CALLBACKS(on_solo, kernel, KERNEL)
STACK_CALLBACKS(on_level, user, USER)
STACK_CALLBACKS(on_level, kernel, KERNEL)

/* With `only_user`: the kernel's stores to its per-CPU data, of which one variable is the current task. */
static void on_watched(unsigned index, qemu_plugin_meminfo_t info, uint64_t vaddr, void *unused)
{
    (void)unused;
    struct vcpu *v = vcpu_of(index);
    if (!stores(info))
        return;
    if (attend(v, KERNEL)) {
        uint64_t page = softtlb_page(v, info, vaddr);
        uint64_t offset = page << 12 | (vaddr & 4095);
        if (page != NO_PAGE && offset >> tap.line_log2 == v->watched_line)
            tasks_stored(v, offset);
    } else if (v->attention & ATTEND_PENDING) {
        follow_task(v, info, vaddr);
    }
}

static void add(struct qemu_plugin_insn *at, qemu_plugin_mem_cb_t callback, void *data)
{
    qemu_plugin_register_vcpu_mem_cb(at, callback, QEMU_PLUGIN_CB_NO_REGS, QEMU_PLUGIN_MEM_RW, data);
}

void access_register(struct qemu_plugin_insn *at, struct nm_insn *insn, enum access access, int kernel)
{
    static const qemu_plugin_mem_cb_t callbacks[][2] = {
        [ACCESS_PLAIN] = {on_plain_user, on_plain_kernel},
        [ACCESS_LOAD] = {on_plain_user},
        [ACCESS_STORE] = {on_plain_user},
        [ACCESS_CALL] = {on_plain_call_user, on_plain_call_kernel},
        [ACCESS_RETURN] = {on_plain_return_user, on_plain_return_kernel},
        [ACCESS_WIDE] = {on_part_user, on_part_kernel},
        [ACCESS_ATOMIC] = {on_atomic_user, on_atomic_kernel},
        [ACCESS_PAIR_8] = {on_pair_8_user, on_pair_8_kernel},
        [ACCESS_PAIR_16] = {on_pair_16_user, on_pair_16_kernel},
        [ACCESS_NT] = {on_nt_user, on_nt_kernel},
    };
    static const qemu_plugin_mem_cb_t solo_callbacks[][2] = {
        [ACCESS_PLAIN] = {on_solo_user, on_solo_kernel},
        [ACCESS_LOAD] = {on_solo_load},
        [ACCESS_STORE] = {on_solo_store},
        [ACCESS_CALL] = {on_solo_call_user, on_solo_call_kernel},
        [ACCESS_RETURN] = {on_solo_return_user, on_solo_return_kernel},
        [ACCESS_WIDE] = {on_solo_part_user, on_solo_part_kernel},
    };
    static const qemu_plugin_mem_cb_t level_callbacks[][2] = {
        [ACCESS_PLAIN] = {on_level_user, on_level_kernel},
        [ACCESS_LOAD] = {on_level_load},
        [ACCESS_STORE] = {on_level_store},
        [ACCESS_CALL] = {on_level_call_user, on_level_call_kernel},
        [ACCESS_RETURN] = {on_level_return_user, on_level_return_kernel},
    };
    if (tap.first_data && access <= ACCESS_RETURN)
        add(at, level_callbacks[access][kernel], insn);
    else
        add(at, (tap.solo && access <= ACCESS_WIDE ? solo_callbacks : callbacks)[access][kernel], insn);
}

void access_watch_current_task(struct qemu_plugin_insn *at)
{
    add(at, on_watched, NULL);
}
