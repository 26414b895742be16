/* SPDX-License-Identifier: GPL-2.0-or-later
 *
 * Branches that a core would predict wrongly. A branch that has begun waits here for the block that runs next, which
 * shows the way that it went. Where that is neither of its two ways, something came between.
 */
#include "decode.h"
#include "engine.h"
#include "predictor.h"

#include <sys/mman.h>

struct branch {
    const struct nm_insn *insn;
    uint64_t behind; /* address of the next instruction in memory */
    uint64_t target; /* NOWHERE: computed */
};

static struct branch *branches; /* by instruction id */
static struct predictor *predictors[NM_MAX_VCPUS];

int branches_init(void)
{
    if (!tap.control->branches)
        return 0;
    branches = mmap(NULL, (size_t)tap.control->insn_capacity * sizeof *branches, PROT_READ | PROT_WRITE,
                    MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (branches == MAP_FAILED) {
        tap_fail("no address space for %u branches", tap.control->insn_capacity);
        return -1;
    }
    for (uint32_t i = 0; i < tap.vcpus; i++) {
        if (!(predictors[i] = predictor_new())) {
            tap_fail("out of memory for predictors of branches");
            return -1;
        }
    }
    return 0;
}

static int went_wrong(struct predictor *p, const struct branch *b, uint64_t next)
{
    const uint64_t address = b->insn->vaddr;
    if (b->target != NOWHERE)
        return (next == b->target || next == b->behind) && predictor_condition(p, address, next == b->target);
    return next >> 63 == address >> 63 && predictor_target(p, address, next);
}

static __attribute__((noinline)) void shown(struct vcpu *v, const struct branch *b, uint64_t next)
{
    if (likely(!went_wrong(predictors[v->index], b, next)))
        return;
    const uint64_t since = v->instructions[USER] + v->instructions[KERNEL] - v->instructions_reported;
    const unsigned mode = b->insn->flags & NM_I_KERNEL ? NM_B_KERNEL : 0;
    const unsigned way = next == b->behind ? 0 : NM_B_TAKEN;
    ring_control(v, NM_C_BRANCH, insn_id(b->insn), mode | way, since, NULL, 0);
}

static void on_block(unsigned index, void *vaddr)
{
    struct vcpu *v = &tap_vcpus[index];
    const struct branch *b = v->branch;
    if (!b)
        return;
    v->branch = NULL;
    if (likely(!v->attention))
        shown(v, b, (uint64_t)vaddr);
}

static void on_branch(unsigned index, void *branch) { tap_vcpus[index].branch = branch; }

void branches_register_block(struct qemu_plugin_tb *tb, uint64_t vaddr)
{
    qemu_plugin_register_vcpu_tb_exec_cb(tb, on_block, QEMU_PLUGIN_CB_NO_REGS, (void *)(uintptr_t)vaddr);
}

/* Where a direct branch goes: its displacement is its last one or four bytes. */
static uint64_t target_of(const uint8_t *code, size_t size, uint64_t behind)
{
    const uint8_t *end = code + size;
    if (size < 6 || code[size - 6] != 0x0f)
        return behind + (uint64_t)(int64_t)(int8_t)end[-1];
    return behind + (uint64_t)(int64_t)(int32_t)((uint32_t)end[-4] | (uint32_t)end[-3] << 8 | (uint32_t)end[-2] << 16 |
                                                 (uint32_t)end[-1] << 24);
}

void branches_register(struct qemu_plugin_insn *at, const struct nm_insn *insn, uint32_t decoded, const uint8_t *code,
                       size_t size)
{
    struct branch *b = &branches[insn_id(insn)];
    const uint64_t behind = insn->vaddr + size;
    *b = (struct branch){insn, behind, decoded & D_CONDITION ? target_of(code, size, behind) : NOWHERE};
    qemu_plugin_register_vcpu_insn_exec_cb(at, on_branch, QEMU_PLUGIN_CB_NO_REGS, b);
}
