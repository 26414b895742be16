/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "first_level.h"

/* Pages of ways that are empty, and that the level lacks. */
enum { EMPTY = ~0u, NO_WAY = ~0u - 1 };

/* The model separates conflicts from capacity by a fully associative shadow of the level, which must not take a line
 * for old that is used all the time: so its use is sent again after this part of the level's lines was missed. */
enum { RESEND_PART = 2 };

static void clear(struct first_level *c, struct first_level_set *s)
{
    *s = (struct first_level_set){.newest = FIRST_LEVEL_WAYS_MAX};
    for (uint32_t way = 0; way < FIRST_LEVEL_WAYS_MAX; way++)
        s->pages[way] = way < c->ways ? EMPTY : NO_WAY;
    if (!c->tree.ways)
        for (uint32_t way = 0; way < c->ways; way++)
            s->order = s->order << 4 | way;
}

int first_level_refused(uint32_t ways, uint32_t tree)
{
    if (ways == 0 || ways > FIRST_LEVEL_WAYS_MAX || (tree && ways & (ways - 1))) {
        tap_fail("a first level of %u ways%s cannot be run by the tap", ways, tree ? " ordered by a tree" : "");
        return 1;
    }
    if (!tap.solo || tap.index_mask >= FIRST_LEVEL_SETS_MAX) {
        tap_fail("a first level can be run by the tap for one vCPU and %u sets of 64-byte lines at most",
                 FIRST_LEVEL_SETS_MAX);
        return 1;
    }
    return 0;
}

uint32_t first_level_resend_after(uint32_t ways)
{
    return ((tap.index_mask + 1) * ways + RESEND_PART - 1) / RESEND_PART;
}

int first_level_init(void)
{
    const struct nm_control *control = tap.control;
    struct first_level *c = &tap_vcpus[0].first_data;
    tap.first_data = control->first_level_data_ways != 0;
    if (!tap.first_data)
        return 0;
    if (first_level_refused(control->first_level_data_ways, control->first_level_data_tree))
        return -1;
    c->ways = control->first_level_data_ways;
    c->resend_after = first_level_resend_after(c->ways);
    if (control->first_level_data_tree)
        tree_plant(&c->tree, c->ways);
    for (uint32_t i = 0; i <= tap.index_mask; i++)
        clear(c, &c->sets[i]);
    return 0;
}

static void forget_sent(struct first_level *c)
{
    c->misses = 0;
    for (uint32_t i = 0; i <= tap.index_mask; i++)
        c->sets[i].sent = 0;
}

/* The first way that is empty, or the one that goes. */
static unsigned place(const struct first_level *c, struct first_level_set *s)
{
    if (unlikely(s->used < c->ways)) {
        s->used++;
        return (unsigned)__builtin_ctz(first_level_ways(c, s, EMPTY));
    }
    return c->tree.ways ? tree_points_at(&c->tree, s->order) : s->order >> 4 * (c->ways - 1) & 15;
}

unsigned first_level_fill(struct first_level *c, struct first_level_set *s, uint32_t page, int store)
{
    const unsigned way = place(c, s), again = s->again >> way & 1;
    const uint16_t bit = (uint16_t)(1u << way);
    s->pages[way] = page;
    s->sent |= bit;
    s->again &= (uint16_t)~bit;
    s->stored = (uint16_t)(store ? s->stored | bit : s->stored & ~bit);
    first_level_used(c, s, way);
    if (unlikely(++c->misses == c->resend_after))
        forget_sent(c);
    return way | again << 4;
}

void first_level_take(struct first_level *c, uint64_t vaddr, uint64_t page)
{
    struct first_level_set *s = first_level_set(c, vaddr);
    const uint32_t found = first_level_ways(c, s, (uint32_t)page);
    if (!found)
        return;
    const unsigned way = (unsigned)__builtin_ctz(found);
    s->pages[way] = EMPTY;
    s->again &= (uint16_t)~(1u << way);
    s->used--;
    if (s->newest == way)
        s->newest = FIRST_LEVEL_WAYS_MAX;
}
