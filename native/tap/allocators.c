/* SPDX-License-Identifier: GPL-2.0-or-later
 *
 * Memory that a language's runtime gives out by itself, which no preloaded library sees: Go's
 * runtime.mallocgc(size, type, needzero). The consumer finds the function in the files that the command maps. QEMU has
 * the guest's registers in its own state where a block begins: the size on entry, the address behind the call.
 *
 * Goroutines change stacks and threads, also while they allocate. So a return is matched with its call by the stack
 * pointer, and a call's frames are those between it and the end of the goroutine's stack: what lies beyond is of
 * another one. The end is in the structure that the function's first instruction compares the stack pointer with.
 */
#include "engine.h"

#include <string.h>

enum { CALLS_LOG2 = 12, CALL_BYTES = 5, STRADDLING_LOG2 = 6 };
/* Offsets in Go's `runtime.g`: its stack's end, and the limit that functions compare with. */
enum { STACK_END = 8, STACK_LIMIT = 16 };

/* A call under way, or the last one that began so. */
struct call {
    uint64_t sp; /* where its return address lies; 0: none */
    uint64_t mm, size;
    uint32_t context;
};
static struct call calls[1 << CALLS_LOG2];

/* Places behind calls that straddle pages: the page before cannot be read from them. */
static uint64_t straddling[1 << STRADDLING_LOG2];

static uint64_t hash(uint64_t key, unsigned bits) { return key * 0x9e3779b97f4a7c15ULL >> (64 - bits); }

static struct call *place_of(const struct vcpu *v, uint64_t sp)
{
    return &calls[hash(sp ^ v->task->mm, CALLS_LOG2)];
}

static uint64_t *straddling_place(uint64_t vaddr) { return &straddling[hash(vaddr, STRADDLING_LOG2)]; }

/* Lets the records that follow be this vCPU's; 0: none are sent. */
static int follow(struct vcpu *v)
{
    if (v->attention & ATTEND_CLOSED)
        return 0;
    if (v->attention & ATTEND_PAUSED)
        parts_follow(v);
    else
        window_attend(v, USER);
    return !(v->attention & ATTEND_CLOSED) && v->task && !v->task->skip;
}

static void on_entry(unsigned index, void *unused)
{
    (void)unused;
    struct vcpu *v = &tap_vcpus[index];
    v->allocates = NULL;
    if (!follow(v))
        return;
    const uint64_t sp = engine_register(index, ENGINE_RSP);
    struct call *c = v->allocates = place_of(v, sp);
    *c = (struct call){sp, v->task->mm, engine_register(index, ENGINE_RAX), 0};
}

/* The word at an address in user space near one that was just accessed, in `page`; 0 where it cannot be read. */
static uint64_t word_near(const struct vcpu *v, uint64_t accessed, uint64_t page, uint64_t vaddr)
{
    if ((vaddr ^ accessed) >> 12)
        page = softtlb_known(v, vaddr);
    uint64_t word = 0;
    const void *at = page == NO_PAGE ? NULL : ram_at(page << 12 | (vaddr & 4095), sizeof word);
    if (at)
        memcpy(&word, at, sizeof word);
    return word;
}

/* The function begins anew on a larger stack where it finds its own too small: nothing called it then. */
static uint32_t context_of(struct vcpu *v, const struct call *c, uint64_t stack_end)
{
    struct task *t = v->task;
    const uint32_t context = contexts_on_stack(v, c->sp, stack_end);
    if (!context && t->allocates_bytes == c->size)
        return t->allocates_in;
    t->allocates_bytes = c->size;
    t->allocates_in = context;
    return context;
}

/* The first instruction loads the limit of the goroutine's stack. */
static void on_limit(unsigned index, qemu_plugin_meminfo_t info, uint64_t vaddr, void *unused)
{
    (void)unused;
    struct vcpu *v = &tap_vcpus[index];
    struct call *c = v->allocates;
    v->allocates = NULL;
    if (!c || v->attention & ATTEND_PAUSED || qemu_plugin_mem_is_store(info))
        return;
    const uint64_t page = softtlb_page(v, info, vaddr);
    c->context = context_of(v, c, word_near(v, vaddr, page, vaddr - STACK_LIMIT + STACK_END));
}

static void on_return(unsigned index, void *unused)
{
    (void)unused;
    struct vcpu *v = &tap_vcpus[index];
    if (!follow(v))
        return;
    const uint64_t sp = engine_register(index, ENGINE_RSP) - sizeof(uint64_t);
    struct call *c = place_of(v, sp);
    if (!c->sp || c->sp != sp || c->mm != v->task->mm)
        return;
    c->sp = v->task->allocates_bytes = 0;
    const uint64_t address = engine_register(index, ENGINE_RAX);
    const int paused = (v->attention & ATTEND_PAUSED) != 0;
    if (!c->size || address >> 47 || (!sites_change(c->mm, address, c->size, !paused) && paused))
        return;
    contexts_send(v, c->context);
    const uint64_t payload[4] = {address, c->size, 0, 0};
    ring_control(v, NM_C_HEAP, NM_HEAP_MANAGED, 0, 0, payload, sizeof payload);
}

static int is_allocator(uint64_t vaddr)
{
    for (unsigned i = 0; i < NM_ALLOCATORS; i++) {
        const uint64_t address = __atomic_load_n(&tap.control->allocators[i].address, __ATOMIC_ACQUIRE);
        if (!address)
            return 0;
        if (address == vaddr)
            return 1;
    }
    return 0;
}

/* Another program may have other code there. */
static int has_code(const struct qemu_plugin_insn *first, uint64_t vaddr)
{
    const uint8_t *code = qemu_plugin_insn_haddr(first);
    for (unsigned i = 0; code && i < NM_ALLOCATORS; i++) {
        const struct nm_allocator *a = &tap.control->allocators[i];
        if (a->address == vaddr && (vaddr & 4095) <= 4096 - sizeof a->code && !memcmp(code, &a->code, sizeof a->code))
            return 1;
    }
    return 0;
}

/* Whether these five bytes call an allocator, and return to `vaddr`. */
static int calls_one(const uint8_t *code, uint64_t vaddr)
{
    int32_t relative;
    memcpy(&relative, code + 1, sizeof relative);
    return code[0] == 0xe8 && is_allocator(vaddr + (uint64_t)(int64_t)relative);
}

static int follows_call(const struct qemu_plugin_insn *first, uint64_t vaddr)
{
    if ((vaddr & 4095) < CALL_BYTES)
        return *straddling_place(vaddr) == vaddr;
    const uint8_t *code = qemu_plugin_insn_haddr(first);
    return code && calls_one(code - CALL_BYTES, vaddr);
}

static void note_straddling(const struct qemu_plugin_insn *last)
{
    uint8_t buffer[16];
    const uint64_t behind = qemu_plugin_insn_vaddr(last) + CALL_BYTES;
    if ((behind & 4095) < CALL_BYTES && qemu_plugin_insn_size(last) == CALL_BYTES &&
        calls_one(engine_insn_bytes(last, CALL_BYTES, buffer), behind))
        *straddling_place(behind) = behind;
}

/* A program was executed: what it maps is known before its own code is translated. */
static void look_at_maps(void)
{
    struct vcpu *v = tap.executed;
    tap.executed = NULL;
    if (!v || !window_is_open())
        return;
    window_enter_slice(v);
    maps_poll(v);
    ring_publish(v, 0);
    ring_await_consumer();
}

void allocators_register(struct qemu_plugin_tb *tb)
{
    struct qemu_plugin_insn *first = qemu_plugin_tb_get_insn(tb, 0);
    const uint64_t vaddr = qemu_plugin_insn_vaddr(first);
    if (vaddr >> 63 || !tap.control->managed_heaps || !engine_reads_registers())
        return;
    if (unlikely(tap.executed))
        look_at_maps();
    if (!tap.control->allocators[0].address)
        return;
    if (is_allocator(vaddr) && has_code(first, vaddr)) {
        qemu_plugin_register_vcpu_tb_exec_cb(tb, on_entry, QEMU_PLUGIN_CB_R_REGS, NULL);
        /* QEMU 7.2 never calls back at loads where loads alone are requested. */
        qemu_plugin_register_vcpu_mem_cb(first, on_limit, QEMU_PLUGIN_CB_NO_REGS, QEMU_PLUGIN_MEM_RW, NULL);
    } else if (follows_call(first, vaddr)) {
        qemu_plugin_register_vcpu_tb_exec_cb(tb, on_return, QEMU_PLUGIN_CB_R_REGS, NULL);
    }
    note_straddling(qemu_plugin_tb_get_insn(tb, qemu_plugin_tb_n_insns(tb) - 1));
}
