/* SPDX-License-Identifier: GPL-2.0-or-later
 *
 * One reference or fetch into the vCPU's chunk, ahead of it a change of calling context.
 */
#ifndef NEARMISS_TAP_RECORD_H
#define NEARMISS_TAP_RECORD_H

#include "tap.h"

static inline unsigned flags_of(const struct nm_insn *insn, enum nm_kind kind, int kernel)
{
    return (kernel ? NM_F_KERNEL : 0) | (kind != NM_LOAD && insn->flags & NM_I_RMW ? NM_F_RMW : 0);
}

static inline uint32_t record_context(const struct vcpu *v, int kernel)
{
    return tap.contexts && v->task ? contexts_now(&v->task->stacks[kernel]) : v->context;
}

static inline int record_has_room(const struct vcpu *v) { return v->used && v->used < tap.chunk_capacity; }

/* Nothing need go ahead of the next record. */
static inline int record_is_ready(const struct vcpu *v, int kernel)
{
    return record_has_room(v) && record_context(v, kernel) == v->context;
}

static inline __attribute__((always_inline)) void record_write(struct vcpu *v, struct nm_record *r,
                                                               const struct nm_insn *insn, uint64_t vaddr,
                                                               unsigned bytes, enum nm_kind kind, unsigned flags,
                                                               uint64_t page, unsigned word)
{
    uint64_t since = v->instructions[USER] + v->instructions[KERNEL] - v->instructions_reported;
    if (since > 255)
        since = 255;
    v->instructions_reported += since;
    r->a = (vaddr & 0xffffffffffffULL) | (uint64_t)kind << 48 | (uint64_t)(bytes - 1) << 52 | (uint64_t)flags << 58;
    r->b = insn_id(insn) | (uint64_t)word << 23 | (page & 0xfffffff) << 28 | since << 56;
    v->used++;
    v->wide.record = r;
}

static inline void record_send(struct vcpu *v, const struct nm_insn *insn, uint64_t vaddr, unsigned bytes,
                               enum nm_kind kind, unsigned flags, uint64_t page, unsigned word)
{
    const uint32_t context = record_context(v, flags & NM_F_KERNEL ? KERNEL : USER);
    if (unlikely(context != v->context)) {
        ring_control(v, NM_C_CONTEXT, context, 0, 0, NULL, 0);
        v->context = context;
    }
    struct nm_record *r = likely(record_has_room(v)) ? v->records + v->used : ring_reserve(v, 1);
    record_write(v, r, insn, vaddr, bytes, kind, flags, page, word);
}

#endif
