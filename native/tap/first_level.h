/* SPDX-License-Identifier: GPL-2.0-or-later
 *
 * The machine's first level of data itself, where the records go to one model that was configured for it, and nowhere
 * else: what hits is counted and dropped, but for a line's first store, which makes it dirty, and now and then a use,
 * so that the model does not take the line for old. A miss names the way it takes. Before it stands the filter, which
 * holds the line that each set used last.
 */
#ifndef NEARMISS_TAP_FIRST_LEVEL_H
#define NEARMISS_TAP_FIRST_LEVEL_H

#include "tree.h"

#include <emmintrin.h>

static inline struct first_level_set *first_level_set(struct first_level *c, uint64_t vaddr)
{
    return &c->sets[vaddr >> SOLO_LINE_LOG2 & tap.index_mask];
}

static inline uint32_t first_level_four(const struct first_level_set *s, uint32_t way, __m128i wanted)
{
    const __m128i same = _mm_cmpeq_epi32(_mm_load_si128((const void *)&s->pages[way]), wanted);
    return (uint32_t)_mm_movemask_ps(_mm_castsi128_ps(same)) << way;
}

/* A bit for each way of the set that has the page. */
static inline uint32_t first_level_ways(const struct first_level *c, const struct first_level_set *s, uint32_t page)
{
    const __m128i wanted = _mm_set1_epi32((int)page);
    uint32_t found = first_level_four(s, 0, wanted) | first_level_four(s, 4, wanted);
    if (unlikely(c->ways > 8))
        found |= first_level_four(s, 8, wanted) | first_level_four(s, 12, wanted);
    return found;
}

/* The order after a use of `way`: ways four bits each, the latest use lowest. */
static inline uint64_t first_level_recency(uint64_t order, unsigned way)
{
    const uint64_t ones = 0x1111111111111111ULL, others = order ^ way * ones;
    const unsigned at = (unsigned)__builtin_ctzll((others - ones) & ~others & ones << 3) & ~3u;
    const uint64_t newer = (1ULL << at) - 1;
    return (order & ~(newer << 4 | 15)) | (order & newer) << 4 | way;
}

static inline void first_level_used(const struct first_level *c, struct first_level_set *s, unsigned way)
{
    s->newest = (uint8_t)way;
    if (c->tree.ways)
        s->order = tree_used(&c->tree, s->order, way);
    else
        s->order = first_level_recency(s->order, way);
}

/* A line that is not there takes the place of another; returns the way, and whether the line replaced was used
 * again. */
unsigned first_level_fill(struct first_level *, struct first_level_set *, uint32_t page, int store);

/* Result of a line's use. */
struct first_level_use {
    int sent;      /* the model must get it */
    int stored;    /* a store to the line was sent */
    unsigned word; /* as in its record */
};

static inline __attribute__((always_inline)) struct first_level_use
first_level_use(struct first_level *c, uint64_t vaddr, uint64_t page, int store)
{
    struct first_level_set *s = first_level_set(c, vaddr);
    const uint32_t found = first_level_ways(c, s, (uint32_t)page);
    if (!found)
        return (struct first_level_use){1, store, first_level_fill(c, s, (uint32_t)page, store)};
    const unsigned way = (unsigned)__builtin_ctz(found), bit = 1u << way;
    if (s->newest != way) {
        s->again |= (uint16_t)bit;
        first_level_used(c, s, way);
    }
    const int news = !(s->sent & bit) || (store && !(s->stored & bit));
    if (unlikely(news)) {
        s->sent |= (uint16_t)bit;
        s->stored |= (uint16_t)((unsigned)store << way);
    }
    return (struct first_level_use){news, (s->stored & bit) != 0, 0};
}

#endif
