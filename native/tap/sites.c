/* SPDX-License-Identifier: GPL-2.0-or-later
 *
 * Places of objects of a language's runtime that were sent with a call site: 16 bytes a bit. Nothing reports what a
 * garbage collector takes back. In a pause objects have no call sites, and only those are sent that take the place of
 * one that has: a program may allocate millions in a pause.
 */
#include "tap.h"

enum { GRANULE_LOG2 = 4, PAGES_LOG2 = 16, PROBES = 16, WORDS = 4 };

struct page {
    uint64_t key; /* 0: empty */
    uint64_t granules[WORDS];
};
static struct page pages[1 << PAGES_LOG2];
static int full; /* some page found no place: nothing is known any more */

static struct page *find(uint64_t mm, uint64_t number)
{
    const uint64_t key = (number | mm << 36) + 1;
    const uint64_t at = key * 0x9e3779b97f4a7c15ULL >> (64 - PAGES_LOG2);
    for (unsigned probe = 0; probe < PROBES; probe++) {
        struct page *p = &pages[(at + probe) & ((1 << PAGES_LOG2) - 1)];
        if (!p->key)
            p->key = key;
        if (p->key == key)
            return p;
    }
    full = 1;
    return NULL;
}

/* The bits of a word that lie in `from..to`, of the bits of its page. */
static uint64_t bits_of(unsigned word, unsigned from, unsigned to)
{
    const unsigned first = word * 64, begin = from > first ? from - first : 0, end = to < first ? 0 : to - first;
    if (begin >= 64 || end <= begin)
        return 0;
    return (end >= 64 ? ~0ULL : (1ULL << end) - 1) & ~0ULL << begin;
}

/* Sets or clears the bits of a page; returns whether one was set. */
static int change(struct page *p, unsigned from, unsigned to, int set)
{
    int was = 0;
    for (unsigned word = 0; p && word < WORDS; word++) {
        const uint64_t bits = bits_of(word, from, to);
        was |= (p->granules[word] & bits) != 0;
        p->granules[word] = set ? p->granules[word] | bits : p->granules[word] & ~bits;
    }
    return was;
}

int sites_change(uint64_t mm, uint64_t address, uint64_t size, int has_site)
{
    const uint64_t first = address >> GRANULE_LOG2, end = (address + size - 1) >> GRANULE_LOG2;
    int was = 0;
    for (uint64_t number = address >> 12; !full && number <= end >> (12 - GRANULE_LOG2); number++) {
        const uint64_t begin = number << (12 - GRANULE_LOG2);
        const unsigned from = first > begin ? (unsigned)(first - begin) : 0;
        const unsigned to = end - begin < WORDS * 64 ? (unsigned)(end - begin) + 1 : WORDS * 64;
        was |= change(find(mm, number), from, to, has_site);
    }
    return was || full;
}
