/* SPDX-License-Identifier: GPL-2.0-or-later
 *
 * The machine's first level of instructions, where the tap runs it. A line of code is known when it is translated, so
 * that its use looks nothing up: it notes the time and whether there is news. first_level.h explains what is sent and
 * why.
 */
#ifndef NEARMISS_TAP_CODE_LINE_H
#define NEARMISS_TAP_CODE_LINE_H

#include "tree.h"

#pragma GCC visibility push(hidden)

struct code_line {
    uint64_t used; /* time of its last use */
    uint64_t line; /* offset in guest RAM >> SOLO_LINE_LOG2 */
    uint8_t here;  /* in the first level */
    uint8_t sent;  /* and its miss was sent, or another use lately */
    uint8_t again; /* and used again after another line of its set; not kept where misses are all that is sent */
    uint8_t way;
};

/* A run of instructions: what its callback is given. */
struct code_run {
    struct code_line *first, *second; /* the lines it enters; second: NULL if none, or its page was not known */
    struct nm_insn *insn;             /* where it begins */
    uint64_t instructions;            /* as nm_insn.run */
};
extern struct code_run *tap_code_runs; /* by instruction id; only where the tap runs this level */

/* The line of this offset in guest RAM; NULL when there are too many, which ends the recording. */
struct code_line *code_line_at(uint64_t paddr);

/* Handles a use of a line that misses in the level, or with no use sent lately; returns the flags of its record. */
unsigned code_line_news(struct code_level *, struct code_line *);

static inline struct code_set *code_set(struct code_level *c, const struct code_line *l)
{
    return &c->sets[l->line & tap.index_mask];
}

/* 1 if the model must get this use; `now` grows from use to use. */
static inline __attribute__((always_inline)) int code_line_used(struct code_level *c, struct code_line *l, uint64_t now,
                                                                int misses_only)
{
    l->used = now;
    if (unlikely(!l->sent))
        return 1;
    if (misses_only && !c->tree.ways)
        return 0;
    struct code_set *s = code_set(c, l);
    l->again |= s->newest != l;
    s->newest = l;
    if (c->tree.ways)
        s->order = tree_used(&c->tree, s->order, l->way);
    return 0;
}

#pragma GCC visibility pop

#endif
