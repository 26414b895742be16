/* SPDX-License-Identifier: GPL-2.0-or-later
 *
 * Callbacks of translated blocks. Every decision that can be made once is made here.
 */
#include "decode.h"
#include "engine.h"
#include "nearmiss_trigger.h"

#include <string.h>
#include <sys/mman.h>

struct insn_identity *tap_identities;

int translate_init(void)
{
    size_t bytes = (size_t)tap.control->insn_capacity * sizeof(struct insn_identity);
    tap_identities = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (tap_identities == MAP_FAILED) {
        tap_fail("no address space for %u instructions", tap.control->insn_capacity);
        return -1;
    }
    return 0;
}

static void on_tlb_flush(unsigned index, void *unused)
{
    (void)unused;
    struct vcpu *v = &tap_vcpus[index];
    engine_check_vcpu(index);
    softtlb_flush(v);
    filter_clear(v);
    fetch_clear(v);
    tasks_address_space(v);
}

static void on_halt(unsigned index, void *unused)
{
    (void)unused;
    struct vcpu *v = &tap_vcpus[index];
    if (attend(v, KERNEL)) {
        maps_poll(v);
        ring_control(v, NM_C_HALT, 0, 0, 0, NULL, 0);
        ring_publish(v, 0);
    } else if (v->attention & ATTEND_PENDING) {
        maps_poll(v);
        ring_publish(v, 0);
    }
}

static void on_fence(unsigned index, void *unused)
{
    (void)unused;
    struct vcpu *v = &tap_vcpus[index];
    if (!fence_matters(v) || v->attention & (ATTEND_CLOSED | ATTEND_SKIP))
        return;
    ring_control(v, NM_C_FENCE, 0, 0, 0, NULL, 0);
    v->nt_pending = 0;
}

static void on_execution(unsigned index, void *counter)
{
    (void)index;
    ++*(uint64_t *)counter;
}

static void count_executions(struct qemu_plugin_insn *at, uint64_t *counter)
{
    if (engine_counts_inline())
        qemu_plugin_register_vcpu_insn_exec_inline(at, QEMU_PLUGIN_INLINE_ADD_U64, counter, 1);
    else
        qemu_plugin_register_vcpu_insn_exec_cb(at, on_execution, QEMU_PLUGIN_CB_NO_REGS, counter);
}

static void exec(struct qemu_plugin_insn *at, qemu_plugin_exec_cb_t callback)
{
    qemu_plugin_register_vcpu_insn_exec_cb(at, callback, QEMU_PLUGIN_CB_NO_REGS, NULL);
}

static uint32_t insn_flags(uint32_t decoded, int kernel)
{
    return (kernel ? NM_I_KERNEL : 0) | (decoded & D_CALL ? NM_I_CALL : 0) | (decoded & D_RETURN ? NM_I_RET : 0) |
           (decoded & (D_ATOMIC | D_PAIR_CX) ? NM_I_ATOMIC : 0) | (decoded & D_NT ? NM_I_NT : 0) |
           (decoded & D_PREFETCH ? NM_I_PREFETCH : 0) | (decoded & D_RMW ? NM_I_RMW : 0);
}

static void register_access(struct qemu_plugin_insn *at, struct nm_insn *insn, uint32_t decoded, const uint8_t *code,
                            size_t size, int kernel)
{
    enum access access = ACCESS_PLAIN;
    if (decoded & D_PAIR_CX)
        access = decode_rex_w(code, size) ? ACCESS_PAIR_16 : ACCESS_PAIR_8;
    else if (decoded & D_ATOMIC)
        access = ACCESS_ATOMIC;
    else if (decoded & D_WIDE)
        access = ACCESS_WIDE;
    else if (decoded & D_NT)
        access = ACCESS_NT;
    else if (tap.contexts && decoded & D_CALL)
        access = ACCESS_CALL;
    else if (tap.contexts && decoded & D_RETURN)
        access = ACCESS_RETURN;
    else if (decoded & D_LOADS && !kernel) /* what an exception stores would come as loads of the kernel's instruction */
        access = ACCESS_LOAD;
    else if (decoded & D_STORES && !kernel)
        access = ACCESS_STORE;
    access_register(at, insn, access, kernel);
}

/* Watches what must be seen of the kernel though only user mode is recorded. */
static void kernel_apart(struct qemu_plugin_insn *at, uint32_t decoded)
{
    if (decoded & D_GS && decoded & D_MEMORY && !(decoded & (D_RMW | D_ATOMIC | D_PAIR_CX)))
        access_watch_current_task(at);
}

/* One instruction of the block that is being translated. */
struct step {
    struct qemu_plugin_insn *at;
    uint32_t decoded;
    int kernel, first; /* first: of its line */
    size_t size;
    struct insn_identity identity;
    struct nm_insn *insn; /* NULL: it has no entry */
};

/* Divides the block into runs: the instructions of one line. One that straddles lines begins a run of its own, which
 * goes on in the second line. */
static void divide(struct step *steps, size_t count)
{
    struct step *run = NULL;
    uint64_t line = ~0ULL;
    for (size_t i = 0; i < count; i++) {
        struct step *s = &steps[i];
        const uint64_t from = s->identity.vaddr >> tap.line_log2;
        const uint64_t to = (s->identity.vaddr + s->size - 1) >> tap.line_log2;
        if (from != line || to != line) {
            const uint64_t in_second = to != from ? s->identity.vaddr + s->size - (to << tap.line_log2) : 0;
            s->first = 1;
            s->identity.fetched = (uint16_t)(s->size - in_second);
            s->identity.fetched_second = (uint16_t)in_second;
            run = s;
            line = to;
        } else if (run->identity.fetched_second) {
            run->identity.fetched_second = (uint16_t)(run->identity.fetched_second + s->size);
        } else {
            run->identity.fetched = (uint16_t)(run->identity.fetched + s->size);
        }
        run->identity.run++;
    }
}

/* The task that is translated for. The slice may have changed since the last callback: the vCPU that runs next has its
 * code translated first. */
static uint64_t translating_task(void)
{
    const int index = engine_vcpu();
    const struct vcpu *v = index < 0 ? window_vcpu() : &tap_vcpus[index];
    return v && v->task ? v->task->address : 0;
}

static struct nm_insn *entry_of(const struct step *s)
{
    int is_new;
    struct nm_insn *insn = insns_entry(&s->identity, &is_new);
    if (insn && is_new) {
        insn->flags = insn_flags(s->decoded, s->kernel) | (uint32_t)s->identity.fetched << NM_I_FETCHED_SHIFT |
                      (uint32_t)s->identity.fetched_second << NM_I_FETCHED_SECOND_SHIFT;
        insn->task = translating_task();
    }
    return insn;
}

static int record_step(struct qemu_plugin_tb *tb, size_t index, struct step *s)
{
    struct nm_insn *insn = s->insn = entry_of(s);
    if (!insn)
        return 0;
    if (s->first)
        fetch_register(tb, index, insn, s->kernel, s->identity.fetched_second != 0);
    if (s->decoded & D_PREFETCH)
        count_executions(s->at, &tap.control->prefetches);
    if (s->decoded & (D_PREFETCH | D_WIDE) && !s->first)
        count_executions(s->at, &insn->executions);
    if (s->decoded & D_MEMORY)
        register_access(s->at, insn, s->decoded, s->identity.code, s->size, s->kernel);
    return 1;
}

/* A recording of misses alone needs no code. */
static void send_code(const struct step *steps, size_t count)
{
    if (tap.misses_only)
        return;
    code_begin(steps->identity.vaddr, steps->identity.paddr);
    for (size_t i = 0; i < count; i++)
        code_insn(steps[i].identity.code, steps[i].size, steps[i].insn);
    code_end();
}

/* Reads a block into `steps`; 0: it has more instructions than there is room for. */
static size_t read_block(struct qemu_plugin_tb *tb, struct step *steps)
{
    const size_t count = qemu_plugin_tb_n_insns(tb);
    if (count > BLOCK_INSNS_MAX) {
        tap_fail("QEMU translated a block of %zu instructions, more than the tap knows of", count);
        return 0;
    }
    for (size_t i = 0; i < count; i++) {
        struct step *s = &steps[i];
        uint8_t buffer[16];
        *s = (struct step){.at = qemu_plugin_tb_get_insn(tb, i)};
        s->size = qemu_plugin_insn_size(s->at);
        s->identity.vaddr = qemu_plugin_insn_vaddr(s->at);
        s->identity.paddr = ram_of_host(qemu_plugin_insn_haddr(s->at));
        s->identity.size = (uint8_t)(s->size < INSN_BYTES_MAX ? s->size : INSN_BYTES_MAX);
        memcpy(s->identity.code, engine_insn_bytes(s->at, s->size, buffer), s->identity.size);
        s->decoded = decode(s->identity.code, s->size);
        s->kernel = (int)(s->identity.vaddr >> 63);
    }
    divide(steps, count);
    return count;
}

static void watch_events(const struct step *s)
{
    if (s->decoded & D_TRIGGER)
        window_trigger_register(s->at, decode_trigger(s->identity.code));
    if (s->decoded & D_TLB_FLUSH)
        exec(s->at, on_tlb_flush);
    if (s->decoded & D_HALT)
        exec(s->at, on_halt);
}

/* The branch at the block's end, if there is one. */
static void watch_branch(struct step *last)
{
    if (!(last->decoded & (D_CONDITION | D_COMPUTED)))
        return;
    if (last->insn || (last->insn = entry_of(last)))
        branches_register(last->at, last->insn, last->decoded, last->identity.code, last->size);
}

static int is_recorded(const struct step *s) { return !(s->kernel && tap.control->only_user); }

static void translate(struct qemu_plugin_tb *tb)
{
    static struct step steps[BLOCK_INSNS_MAX];
    allocators_register(tb);
    cleared_register(tb, 0);
    const size_t count = read_block(tb, steps);
    const int branches = tap.control->branches && count && is_recorded(&steps[0]);
    if (branches)
        branches_register_block(tb, steps[0].identity.vaddr);
    for (size_t i = 0; i < count; i++) {
        struct step *s = &steps[i];
        watch_events(s);
        if (!is_recorded(s)) {
            kernel_apart(s->at, s->decoded);
            continue;
        }
        window_symbol_register(tb, i, s->identity.vaddr, s->identity.code, s->size);
        irq_register(s->at, s->decoded, s->identity.vaddr);
        if (s->decoded & D_FENCE)
            exec(s->at, on_fence);
        if ((s->first || s->decoded & (D_MEMORY | D_PREFETCH)) && !record_step(tb, i, s))
            return;
    }
    if (branches)
        watch_branch(&steps[count - 1]);
    if (count)
        send_code(steps, count);
}

void translate_block(struct qemu_plugin_tb *tb)
{
    if (!window_is_open() && tap.control->state != NM_STATE_ATTENTIVE)
        return;
    translate(tb);
}

/* Whether the heap shim's mailbox is filled by this instruction. */
static int is_mail(const struct step *s, const struct step *behind)
{
    return s->decoded & D_MEMORY && behind->decoded & D_TRIGGER &&
           decode_trigger(behind->identity.code) == NEARMISS_TRIGGER_HEAP;
}

/* A system call may have mapped memory: its context is known now. */
static void on_return_from_kernel(unsigned index, void *unused)
{
    (void)unused;
    struct vcpu *v = &tap_vcpus[index];
    window_enter_slice(v);
    maps_poll(v);
}

/* Whether the block begins behind a system call: the kernel returns to it. */
static int follows_syscall(const struct step *first)
{
    static const uint8_t syscall[] = {0x0f, 0x05};
    const uint8_t *code = qemu_plugin_insn_haddr(first->at);
    const uint64_t into_page = first->identity.vaddr & 4095;
    return !first->kernel && code && into_page >= sizeof syscall &&
           !memcmp(code - sizeof syscall, syscall, sizeof syscall);
}

void translate_calls(struct qemu_plugin_tb *tb)
{
    static struct step steps[BLOCK_INSNS_MAX];
    allocators_register(tb);
    cleared_register(tb, 1);
    const size_t count = read_block(tb, steps);
    if (count && follows_syscall(&steps[0]))
        exec(steps[0].at, on_return_from_kernel);
    for (size_t i = 0; i < count; i++) {
        struct step *s = &steps[i];
        watch_events(s);
        const int calls = tap.contexts && s->decoded & (D_CALL | D_RETURN) && s->decoded & D_MEMORY;
        if (s->kernel)
            kernel_apart(s->at, s->decoded);
        else if ((calls || (i + 1 < count && is_mail(s, s + 1))) && (s->insn = entry_of(s)))
            register_access(s->at, s->insn, s->decoded, s->identity.code, s->size, 0);
    }
}
