/* SPDX-License-Identifier: GPL-2.0-or-later
 *
 * One reference or fetch into the vCPU's chunk, ahead of it a change of calling context.
 */
#ifndef NEARMISS_TAP_RECORD_H
#define NEARMISS_TAP_RECORD_H

#include "tap.h"

static inline unsigned flags_of(const struct nm_insn *insn, enum nm_kind kind)
{
    return (insn->flags & NM_I_KERNEL ? NM_F_KERNEL : 0) | (kind != NM_LOAD && insn->flags & NM_I_RMW ? NM_F_RMW : 0);
}

static inline void record_send(struct vcpu *v, const struct nm_insn *insn, uint64_t vaddr, unsigned bytes,
                               enum nm_kind kind, unsigned flags, uint64_t page, unsigned word)
{
    if (tap.contexts && v->task) {
        uint32_t context = contexts_now(&v->task->stacks[flags & NM_F_KERNEL ? KERNEL : USER]);
        if (unlikely(context != v->context)) {
            ring_control(v, NM_C_CONTEXT, context, 0, 0, NULL, 0);
            v->context = context;
        }
    }
    struct nm_record *r =
        likely(v->used && v->used < tap.chunk_capacity) ? v->records + v->used : ring_reserve(v, 1);
    uint64_t since = v->instructions[USER] + v->instructions[KERNEL] - v->instructions_reported;
    if (since > 255)
        since = 255;
    v->instructions_reported += since;
    r->a = (vaddr & 0xffffffffffffULL) | (uint64_t)kind << 48 | (uint64_t)(bytes - 1) << 52 | (uint64_t)flags << 58;
    r->b = insn_id(insn) | (uint64_t)word << 23 | (page & 0xfffffff) << 28 | since << 56;
    v->used++;
    v->wide.record = r;
}

#endif
