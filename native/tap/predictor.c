/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "predictor.h"

#include <stdlib.h>

enum { TABLES = 6, INDEX_LOG2 = 12, TAG_LOG2 = 11, BASE_LOG2 = 14, TARGETS_LOG2 = 12, HISTORY_MAX = 256 };
enum { COUNTER_MAX = 3, COUNTER_MIN = -4, USEFUL_MAX = 3 };

static const unsigned lengths[TABLES] = {5, 11, 24, 53, 116, 250};

struct entry {
    uint16_t tag;
    int8_t counter; /* 0 and up: taken */
    uint8_t useful;
};

/* The latest bits of the history, exclusive or'ed piece by piece. */
struct folded {
    uint32_t bits;
    unsigned length, width;
};

struct target {
    uint64_t address, target;
};

struct predictor {
    int8_t base[1u << BASE_LOG2]; /* 0 and up: taken */
    struct entry tables[TABLES][1u << INDEX_LOG2];
    struct folded indexes[TABLES], tags[TABLES], more_tags[TABLES];
    uint8_t history[HISTORY_MAX]; /* a ring of bits */
    unsigned newest;
    struct target latest[1u << TARGETS_LOG2], by_history[1u << TARGETS_LOG2];
};

static void fold_init(struct folded *f, unsigned length, unsigned width) { *f = (struct folded){0, length, width}; }

struct predictor *predictor_new(void)
{
    struct predictor *p = calloc(1, sizeof *p);
    for (unsigned t = 0; p && t < TABLES; t++) {
        fold_init(&p->indexes[t], lengths[t], INDEX_LOG2);
        fold_init(&p->tags[t], lengths[t], TAG_LOG2);
        fold_init(&p->more_tags[t], lengths[t], TAG_LOG2 - 1);
    }
    return p;
}

static inline void fold(struct folded *f, unsigned in, unsigned out)
{
    uint32_t bits = f->bits << 1 | in;
    bits ^= out << f->length % f->width;
    bits ^= bits >> f->width;
    f->bits = bits & ((1u << f->width) - 1);
}

static void remember(struct predictor *p, unsigned bit)
{
    p->newest = (p->newest + 1) % HISTORY_MAX;
    p->history[p->newest] = (uint8_t)bit;
    for (unsigned t = 0; t < TABLES; t++) {
        const unsigned out = p->history[(p->newest + HISTORY_MAX - lengths[t]) % HISTORY_MAX];
        fold(&p->indexes[t], bit, out);
        fold(&p->tags[t], bit, out);
        fold(&p->more_tags[t], bit, out);
    }
}

static inline struct entry *entry_at(struct predictor *p, unsigned t, uint64_t address)
{
    const uint64_t mixed = address ^ address >> INDEX_LOG2 ^ address >> (INDEX_LOG2 + t + 1) ^ p->indexes[t].bits;
    return &p->tables[t][mixed & ((1u << INDEX_LOG2) - 1)];
}

static inline uint16_t tag_at(const struct predictor *p, unsigned t, uint64_t address)
{
    const uint64_t mixed = address ^ address >> TAG_LOG2 ^ p->tags[t].bits ^ (uint64_t)p->more_tags[t].bits << 1;
    return (uint16_t)(mixed & ((1u << TAG_LOG2) - 1));
}

static inline void count(int8_t *counter, int up, int least, int most)
{
    if (up ? *counter < most : *counter > least)
        *counter = (int8_t)(*counter + (up ? 1 : -1));
}

static int is_weak(const struct entry *e) { return (e->counter == 0 || e->counter == -1) && !e->useful; }

/* A table of a longer history gets an entry; where all are useful, they become less so. */
static void allocate(struct predictor *p, uint64_t address, unsigned from, int taken)
{
    for (unsigned t = from; t < TABLES; t++) {
        struct entry *e = entry_at(p, t, address);
        if (e->useful)
            continue;
        *e = (struct entry){tag_at(p, t, address), (int8_t)(taken ? 0 : -1), 0};
        return;
    }
    for (unsigned t = from; t < TABLES; t++)
        entry_at(p, t, address)->useful--;
}

int predictor_condition(struct predictor *p, uint64_t address, int taken)
{
    int8_t *base = &p->base[(address ^ address >> BASE_LOG2) & ((1u << BASE_LOG2) - 1)];
    struct entry *found = NULL;
    unsigned longer = 0; /* the first table behind the one that was found */
    int shorter = *base >= 0;
    for (unsigned t = 0; t < TABLES; t++) {
        struct entry *e = entry_at(p, t, address);
        if (e->tag != tag_at(p, t, address))
            continue;
        if (found)
            shorter = found->counter >= 0;
        found = e;
        longer = t + 1;
    }
    const int known = found ? found->counter >= 0 : shorter;
    const int predicted = found && is_weak(found) ? shorter : known;
    if (found && known != shorter) {
        if (known == taken)
            found->useful = found->useful < USEFUL_MAX ? found->useful + 1 : USEFUL_MAX;
        else if (found->useful)
            found->useful--;
    }
    const int wrong = predicted != taken;
    if (known != taken && longer < TABLES)
        allocate(p, address, longer, taken);
    if (found)
        count(&found->counter, taken, COUNTER_MIN, COUNTER_MAX);
    else
        count(base, taken, -2, 1);
    remember(p, (unsigned)taken);
    return wrong;
}

int predictor_target(struct predictor *p, uint64_t address, uint64_t target)
{
    const uint64_t mask = (1u << TARGETS_LOG2) - 1, with_history = address ^ (uint64_t)p->indexes[2].bits << 1;
    struct target *latest = &p->latest[(address ^ address >> TARGETS_LOG2) & mask];
    struct target *known = &p->by_history[(with_history ^ with_history >> TARGETS_LOG2) & mask];
    const struct target *by = known->address == with_history ? known : latest;
    const int wrong = by->target != target || (by == latest && latest->address != address);
    if (wrong || by == known)
        *known = (struct target){with_history, target};
    *latest = (struct target){address, target};
    for (unsigned bit = 0; bit < 2; bit++)
        remember(p, (unsigned)((target >> 4 ^ target >> 9) >> bit & 1));
    return wrong;
}
