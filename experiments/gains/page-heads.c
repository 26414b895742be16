/* SPDX-License-Identifier: MIT OR Apache-2.0
 *
 * An allocator that keeps what it knows of each page at the page's head: a sweep in random order adds up the free bytes of
 * 200 pages. The order is an array, so no head is waited for to know the next one. The twin keeps the heads side by side.
 *
 * SIZE: thousands of heads read. */
#include "../recall/planted.h"

enum { PAGES = 200, APART = TWINNED ? LINE : PAGE };

struct head {
    uint32_t free_bytes, blocks;
};

HOT uint64_t sweep(const char *heap, const uint32_t *order) {
    uint64_t sum = 0;
    for (int i = 0; i < PAGES; i++) {
        const struct head *head = (const struct head *)(heap + (uint64_t)order[i] * APART);
        sum += head->free_bytes + 16 * head->blocks;
    }
    return sum;
}

int main(int argc, char **argv) {
    uint64_t heads = argument(argc, argv, 1, 1 << 30) * 1000, digest = 0;
    char *heap = memory(PAGE, (size_t)PAGES * APART);
    uint32_t order[PAGES];
    for (uint32_t i = 0; i < PAGES; i++) {
        order[i] = i * 77 % PAGES;
        *(struct head *)(heap + (uint64_t)i * APART) = (struct head){i * 40 % PAGE, i % 13};
    }
    uint64_t begun = now_ns();
    for (uint64_t i = 0; i < heads / PAGES; i++)
        digest = mix(digest + sweep(heap, order));
    return report(digest, begun);
}
