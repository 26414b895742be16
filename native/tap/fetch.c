/* SPDX-License-Identifier: GPL-2.0-or-later
 *
 * Execution enters a line of code: instructions are counted here, and the line is sent unless its set of the fetch
 * filter held it. That filter goes by physical lines, which are known at translation.
 */
#include "record.h"

static __attribute__((noinline)) void missed(struct vcpu *v, const struct nm_insn *insn, uint64_t vaddr,
                                             uint64_t line, uint64_t page, unsigned bytes, int kernel)
{
    vcpu_lock(v);
    v->fetched[(vaddr >> tap.index_low) & tap.index_mask] = line;
    if (v->fetch_page != vaddr >> 12) {
        v->fetch_page = vaddr >> 12;
        maps_poll(v);
    }
    record_send(v, insn, vaddr, bytes, NM_FETCH, kernel ? NM_F_KERNEL : 0, page);
    vcpu_unlock(v);
}

static inline void enter_line(struct vcpu *v, const struct nm_insn *insn, uint64_t vaddr, uint64_t paddr,
                              unsigned bytes, int kernel)
{
    uint64_t line = paddr >> tap.line_log2;
    if (unlikely(v->fetched[(vaddr >> tap.index_low) & tap.index_mask] != line))
        missed(v, insn, vaddr, line, paddr >> 12, bytes, kernel);
}

/* 1 if what follows is recorded. */
static inline int enter_run(struct vcpu *v, struct nm_insn *insn, int kernel)
{
    if (unlikely(v->attention) && !window_attend(v, kernel))
        return 0;
    tap_bump(&insn->executions);
    v->instructions[kernel] += insn->run;
    return 1;
}

static inline void one_line(unsigned index, struct nm_insn *insn, int kernel)
{
    struct vcpu *v = &tap_vcpus[index];
    if (enter_run(v, insn, kernel))
        enter_line(v, insn, insn->vaddr, insn->paddr, tap_notes[insn_id(insn)].identity.fetched, kernel);
}

/* An instruction that straddles two lines enters both. */
static inline void two_lines(unsigned index, struct nm_insn *insn, int kernel)
{
    struct vcpu *v = &tap_vcpus[index];
    const struct insn_identity *note = &tap_notes[insn_id(insn)].identity;
    if (!enter_run(v, insn, kernel))
        return;
    enter_line(v, insn, insn->vaddr, insn->paddr, note->fetched, kernel);
    uint64_t second = (insn->vaddr | (tap.line_bytes - 1)) + 1;
    uint64_t paddr = insn->paddr + (second - insn->vaddr);
    if ((second & 4095) == 0) {
        /* The next page lies anywhere. Where data there was touched it is known; else the next block enters it. */
        uint64_t page = softtlb_known(v, second);
        if (page == NO_PAGE)
            return;
        paddr = page << 12;
    }
    enter_line(v, insn, second, paddr, note->fetched_second, kernel);
}

static void count_only(unsigned index, struct nm_insn *insn, int kernel)
{
    enter_run(&tap_vcpus[index], insn, kernel);
}

#define CALLBACK(name)                                                                                                 \
    static void name##_user(unsigned index, void *insn) { name(index, insn, USER); }                                   \
    static void name##_kernel(unsigned index, void *insn) { name(index, insn, KERNEL); }
CALLBACK(one_line)
CALLBACK(two_lines)
CALLBACK(count_only)

void fetch_register(struct qemu_plugin_tb *tb, size_t index, struct nm_insn *insn, int kernel, int second_line)
{
    qemu_plugin_exec_cb_t callback;
    if (!tap.control->fetches || insn->paddr == ~0ULL)
        callback = kernel ? count_only_kernel : count_only_user;
    else if (second_line)
        callback = kernel ? two_lines_kernel : two_lines_user;
    else
        callback = kernel ? one_line_kernel : one_line_user;
    if (index == 0)
        qemu_plugin_register_vcpu_tb_exec_cb(tb, callback, QEMU_PLUGIN_CB_NO_REGS, insn);
    else
        qemu_plugin_register_vcpu_insn_exec_cb(qemu_plugin_tb_get_insn(tb, index), callback, QEMU_PLUGIN_CB_NO_REGS,
                                               insn);
}
