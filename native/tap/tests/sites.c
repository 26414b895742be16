/* SPDX-License-Identifier: GPL-2.0-or-later
 *
 * Places of objects with call sites, without QEMU: ends with 0 where all is as it should be.
 */
#include "../sites.c"

#include <stdio.h>

#define EXPECT(what)                                                                                                   \
    do {                                                                                                               \
        if (!(what)) {                                                                                                 \
            printf("line %d: not so: %s\n", __LINE__, #what);                                                          \
            return 1;                                                                                                  \
        }                                                                                                              \
    } while (0)

enum { HERE = 7, ELSEWHERE = 8, LARGE = 32 << 20 };
static const uint64_t heap = 0xc000000000;

static int small_objects(void)
{
    EXPECT(!sites_change(HERE, heap, 64, 0));
    EXPECT(!sites_change(HERE, heap + 16, 16, 1));
    EXPECT(!sites_change(HERE, heap, 16, 0) && !sites_change(HERE, heap + 32, 16, 0));
    EXPECT(!sites_change(ELSEWHERE, heap + 16, 16, 0));
    EXPECT(sites_change(HERE, heap, 64, 0) && !sites_change(HERE, heap, 64, 0));
    return 0;
}

static int objects_of_many_pages(void)
{
    sites_change(HERE, heap + 4080, 32, 1);
    EXPECT(sites_change(HERE, heap + 4096, 8, 0) && sites_change(HERE, heap + 4088, 8, 0));
    sites_change(HERE, heap, LARGE, 1);
    EXPECT(!sites_change(HERE, heap + LARGE, 8, 0) && sites_change(HERE, heap + LARGE - 8, 8, 0));
    EXPECT(sites_change(HERE, heap + 8184, 16, 0) && !sites_change(HERE, heap + 8184, 16, 0));
    return 0;
}

/* More places than there is room for: each may have had an object. */
static int a_large_heap(void)
{
    sites_change(ELSEWHERE, heap, (uint64_t)LARGE * 64, 1);
    EXPECT(sites_change(HERE, heap - 4096, 8, 0));
    return 0;
}

int main(void) { return small_objects() || objects_of_many_pages() || a_large_heap(); }
