/* SPDX-License-Identifier: GPL-2.0-or-later
 *
 * Tree-PLRU: a set's bits form a tree over its ways, node 1 the root; a set bit points right.
 */
#ifndef NEARMISS_TAP_TREE_H
#define NEARMISS_TAP_TREE_H

#include "tap.h"

/* Sets, by way used, the bits to keep and those to set, so that every node on its path points away from it. */
static inline void tree_plant(struct tree *t, uint32_t ways)
{
    t->ways = ways;
    for (uint32_t way = 0; way < ways; way++) {
        t->keep[way] = ~0ULL;
        t->point[way] = 0;
        for (uint32_t node = way + ways; node > 1; node /= 2) {
            t->keep[way] &= ~(1ULL << node / 2);
            t->point[way] |= (uint64_t)(node % 2 == 0) << node / 2;
        }
    }
}

static inline uint64_t tree_used(const struct tree *t, uint64_t bits, unsigned way)
{
    return (bits & t->keep[way]) | t->point[way];
}

static inline unsigned tree_points_at(const struct tree *t, uint64_t bits)
{
    uint32_t node = 1;
    while (node < t->ways)
        node = node * 2 + (bits >> node & 1);
    return node - t->ways;
}

#endif
