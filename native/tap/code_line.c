/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "code_line.h"

#include <stdlib.h>
#include <sys/mman.h>

/* 256 MiB of code. */
enum { LINES_MAX = 1u << 22, PLACES_MIN = 1u << 14 };

struct code_run *tap_code_runs;

static struct code_line *lines;
static uint32_t *table; /* index + 1; 0: empty; open addressing */
static uint32_t places, used;

/* Looked up all the time and seldom grown: large pages spare the machine's own TLB. */
static void *reserve(uint64_t bytes)
{
    void *at = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (at == MAP_FAILED)
        return NULL;
    madvise(at, bytes, MADV_HUGEPAGE);
    return at;
}

int code_line_init(void)
{
    const struct nm_control *control = tap.control;
    struct code_level *c = &tap_vcpus[0].code;
    tap.first_fetch = control->first_level_fetch_ways != 0;
    if (!tap.first_fetch)
        return 0;
    if (first_level_refused(control->first_level_fetch_ways, control->first_level_fetch_tree))
        return -1;
    c->ways = control->first_level_fetch_ways;
    c->resend_after = first_level_resend_after(c->ways);
    tap.misses_only = control->first_level_misses_only != 0;
    if (control->first_level_fetch_tree)
        tree_plant(&c->tree, c->ways);
    lines = reserve(sizeof *lines * LINES_MAX);
    tap_code_runs = reserve(sizeof *tap_code_runs * control->insn_capacity);
    if (!lines || !tap_code_runs) {
        tap_fail("no address space for %u lines of code", LINES_MAX);
        return -1;
    }
    return 0;
}

static uint32_t place_of(uint64_t line)
{
    uint32_t at = (uint32_t)(line * 0x9e3779b97f4a7c15ULL >> 32) & (places - 1);
    while (table[at] && lines[table[at] - 1].line != line)
        at = (at + 1) & (places - 1);
    return at;
}

static int grow(void)
{
    const uint32_t larger = places ? places * 2 : PLACES_MIN;
    uint32_t *fresh = calloc(larger, sizeof *fresh);
    if (!fresh)
        return 0;
    free(table);
    table = fresh;
    places = larger;
    for (uint32_t i = 0; i < used; i++)
        table[place_of(lines[i].line)] = i + 1;
    return 1;
}

struct code_line *code_line_at(uint64_t paddr)
{
    const uint64_t line = paddr >> SOLO_LINE_LOG2;
    if (used * 2 >= places && !grow()) {
        tap_fail("out of memory for the table of lines of code");
        return NULL;
    }
    const uint32_t at = place_of(line);
    if (!table[at]) {
        if (used == LINES_MAX) {
            tap_fail("more than %u lines of code ran", LINES_MAX);
            return NULL;
        }
        lines[used].line = line;
        table[at] = ++used;
    }
    return &lines[table[at] - 1];
}

/* The first way that is empty, or the one that goes. */
static unsigned place(const struct code_level *c, const struct code_set *s)
{
    unsigned oldest = 0;
    for (uint32_t way = 0; way < c->ways; way++) {
        if (!s->ways[way])
            return way;
        if (s->ways[way]->used < s->ways[oldest]->used)
            oldest = way;
    }
    return c->tree.ways ? tree_points_at(&c->tree, s->order) : oldest;
}

static void forget_sent(struct code_level *c)
{
    c->misses = 0;
    for (uint32_t i = 0; i <= tap.index_mask; i++)
        for (uint32_t way = 0; way < c->ways; way++)
            if (c->sets[i].ways[way])
                c->sets[i].ways[way]->sent = 0;
}

static unsigned fill(struct code_level *c, struct code_set *s, struct code_line *l)
{
    const unsigned way = place(c, s);
    struct code_line *gone = s->ways[way];
    unsigned again = 0;
    if (gone) {
        again = gone->again;
        gone->here = gone->sent = 0;
    }
    s->ways[way] = l;
    l->way = (uint8_t)way;
    l->here = 1;
    l->again = 0;
    if (unlikely(++c->misses == c->resend_after) && !tap.misses_only)
        forget_sent(c);
    return way | again << 4;
}

unsigned code_line_news(struct code_level *c, struct code_line *l)
{
    struct code_set *s = code_set(c, l);
    unsigned word = 0;
    if (l->here)
        l->again |= s->newest != l;
    else
        word = fill(c, s, l);
    l->sent = 1;
    s->newest = l;
    if (c->tree.ways)
        s->order = tree_used(&c->tree, s->order, l->way);
    return word;
}

void code_line_take(struct code_level *c, uint64_t line)
{
    struct code_set *s = &c->sets[line & tap.index_mask];
    for (uint32_t way = 0; way < c->ways; way++) {
        struct code_line *l = s->ways[way];
        if (!l || l->line != line)
            continue;
        l->here = l->sent = 0;
        s->ways[way] = NULL;
        if (s->newest == l)
            s->newest = NULL;
    }
}
