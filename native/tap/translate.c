/* SPDX-License-Identifier: GPL-2.0-or-later
 *
 * What to call when a translated block runs. Every decision that can be made once is made here.
 */
#include "decode.h"
#include "tap.h"

#include <pthread.h>
#include <string.h>
#include <sys/mman.h>

struct insn_note *tap_notes;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

int translate_init(void)
{
    size_t bytes = (size_t)tap.control->insn_capacity * sizeof(struct insn_note);
    tap_notes = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (tap_notes == MAP_FAILED) {
        tap_fail("no address space for %u instructions", tap.control->insn_capacity);
        return -1;
    }
    for (unsigned shift = 0; shift < 5; shift++)
        if (qemu_plugin_mem_size_shift(shift << 4) != shift || qemu_plugin_mem_is_store(1u << 16) ||
            !qemu_plugin_mem_is_store(2u << 16)) {
            tap_fail("this QEMU describes memory accesses in a way the tap does not know: use QEMU 7.2 or 10.0");
            return -1;
        }
    return 0;
}

/* The bytes of an instruction, at least `size` of them. */
const uint8_t *insn_bytes(const struct qemu_plugin_insn *at, size_t size, uint8_t buffer[16])
{
    if (!tap.modern)
        return qemu_plugin_insn_data(at, NULL, 0);
    qemu_plugin_insn_data(at, buffer, size < 16 ? size : 16);
    return buffer;
}

static struct nm_insn *new_insn(uint64_t vaddr, const struct qemu_plugin_insn *at)
{
    uint32_t id = tap.control->insns;
    if (id >= tap.control->insn_capacity) {
        tap_fail("the table of %u instructions is full: give the tap a larger one", tap.control->insn_capacity);
        return NULL;
    }
    struct nm_insn *insn = &tap.insns[id];
    insn->vaddr = vaddr;
    insn->paddr = ram_of_host(qemu_plugin_insn_haddr(at));
    insn->task = window_task();
    tap_notes[id].kernel = vaddr >> 63;
    __atomic_store_n(&tap.control->insns, id + 1, __ATOMIC_RELEASE);
    return insn;
}

static void on_tlb_flush(unsigned index, void *unused)
{
    (void)unused;
    struct vcpu *v = &tap_vcpus[index];
    vcpu_lock(v);
    softtlb_flush(v);
    filter_clear(v);
    vcpu_unlock(v);
}

static void on_halt(unsigned index, void *unused)
{
    (void)unused;
    struct vcpu *v = &tap_vcpus[index];
    vcpu_lock(v);
    if (attend(v, KERNEL)) {
        maps_poll(v);
        ring_control(v, NM_C_HALT, 0, 0, 0, NULL, 0);
        ring_publish(v, 0);
    }
    vcpu_unlock(v);
}

static void on_fence(unsigned index, void *unused)
{
    (void)unused;
    struct vcpu *v = &tap_vcpus[index];
    if (!v->nt_pending || v->attention & (ATTEND_CLOSED | ATTEND_SKIP))
        return;
    vcpu_lock(v);
    ring_control(v, NM_C_FENCE, 0, 0, 0, NULL, 0);
    v->nt_pending = 0;
    vcpu_unlock(v);
}

static void on_execution(unsigned index, void *counter)
{
    (void)index;
    __atomic_fetch_add((uint64_t *)counter, 1, __ATOMIC_RELAXED);
}

static void count_executions(struct qemu_plugin_insn *at, uint64_t *counter)
{
    if (qemu_plugin_register_vcpu_insn_exec_inline && !tap.modern)
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
           (decoded & D_PREFETCH ? NM_I_PREFETCH : 0);
}

static void register_access(struct qemu_plugin_insn *at, struct nm_insn *insn, uint32_t decoded, const uint8_t *code,
                            size_t size, int kernel)
{
    struct insn_note *note = &tap_notes[insn_id(insn)];
    note->kind = decoded & D_NT ? NM_NT_STORE : NM_STORE;
    note->flags = decoded & D_RMW ? NM_F_RMW : 0;
    if (decoded & D_PAIR_CX)
        note->pair = decode_rex_w(code, size) ? 16 : 8;
    enum access access = ACCESS_PLAIN;
    if (decoded & D_PAIR_CX)
        access = ACCESS_PAIR;
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
    access_register(at, insn, access, kernel);
}

/* What must be seen of the kernel though only user mode is recorded. */
static void kernel_apart(struct qemu_plugin_insn *at, uint32_t decoded)
{
    if (decoded & D_GS && decoded & D_MEMORY && !(decoded & (D_RMW | D_ATOMIC | D_PAIR_CX)))
        access_watch_current_task(at);
}

struct run {
    struct nm_insn *insn; /* the first instruction of the line */
    uint64_t line;
};

/* An instruction more in the last line that the run entered. */
static void add_fetched(struct insn_note *note, size_t size)
{
    uint8_t *bytes = note->fetched_second ? &note->fetched_second : &note->fetched;
    *bytes = (uint8_t)(*bytes + size);
}

static void translate(struct qemu_plugin_tb *tb)
{
    const size_t count = qemu_plugin_tb_n_insns(tb);
    struct run run = {NULL, ~0ULL};
    uint8_t buffer[16];
    for (size_t i = 0; i < count; i++) {
        struct qemu_plugin_insn *at = qemu_plugin_tb_get_insn(tb, i);
        const uint64_t vaddr = qemu_plugin_insn_vaddr(at);
        const size_t size = qemu_plugin_insn_size(at);
        const uint8_t *code = insn_bytes(at, size, buffer);
        const uint32_t decoded = decode(code, size);
        const int kernel = (int)(vaddr >> 63);

        if (decoded & D_TRIGGER)
            window_trigger_register(at, decode_trigger(code));
        if (decoded & D_TLB_FLUSH)
            exec(at, on_tlb_flush);
        if (decoded & D_HALT)
            exec(at, on_halt);
        if (kernel && tap.control->only_user) {
            kernel_apart(at, decoded);
            continue;
        }
        irq_register(at, decoded, vaddr);
        if (decoded & D_FENCE)
            exec(at, on_fence);

        const uint64_t line = vaddr >> tap.line_log2, last_line = (vaddr + size - 1) >> tap.line_log2;
        const int first = line != run.line || last_line != line;
        if (!first)
            add_fetched(&tap_notes[insn_id(run.insn)], size);
        if (!first && !(decoded & (D_MEMORY | D_PREFETCH))) {
            run.insn->run++;
            continue;
        }
        struct nm_insn *insn = new_insn(vaddr, at);
        if (!insn)
            return;
        struct insn_note *note = &tap_notes[insn_id(insn)];
        insn->flags = insn_flags(decoded, kernel);
        if (first) {
            run = (struct run){insn, last_line};
            uint64_t end = last_line << tap.line_log2;
            note->fetched = (uint8_t)(last_line != line ? end - vaddr : size);
            note->fetched_second = (uint8_t)(last_line != line ? vaddr + size - end : 0);
            fetch_register(tb, i, insn, kernel, last_line != line);
        }
        run.insn->run++;
        if (decoded & D_PREFETCH) {
            count_executions(at, &tap.control->prefetches);
            if (!first)
                count_executions(at, &insn->executions);
        }
        if (!(decoded & D_MEMORY))
            continue;
        if (decoded & D_WIDE && !first)
            count_executions(at, &insn->executions);
        register_access(at, insn, decoded, code, size, kernel);
    }
}

void translate_block(qemu_plugin_id_t id, struct qemu_plugin_tb *tb)
{
    (void)id;
    if (!window_is_open())
        return;
    pthread_mutex_lock(&lock);
    translate(tb);
    pthread_mutex_unlock(&lock);
}
