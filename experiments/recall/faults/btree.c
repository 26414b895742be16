/* SPDX-License-Identifier: MIT OR Apache-2.0
 *
 * A search tree of three levels in a pool of pages: inner pages have eight children, leaves have a head with one-byte
 * fingerprints and sixteen entries. A page uses only its first five lines, and random look-ups go through all pages, so
 * five sets of the first level carry the whole tree. Each value found determines the next key. The twin's pages
 * lie five lines further apart. Natively that saves little: a look-up misses once to
 * three times, and does more than that.
 *
 * SIZE: thousands of look-ups. SHAPE: number of inner pages below the root; each has eight leaves.
 *
 *: half = "second"
 *: kind = "crowd"
 *: names = ["look_up", "child_of", "find_in_leaf"]
 *: reach = "inside"
 *: traced = 85
 *: measured = 8000
 *: [[case]]
 *: shape = [3]
 *: [[case]]
 *: shape = [8]
 */
#include "../planted.h"

enum { FANOUT = 8, ENTRIES = 16, PAGE_STRIDE = PAGE + TWINNED * 5 * LINE, MOST_PAGES = 1 + FANOUT + FANOUT * FANOUT };

struct page {
    uint64_t number;
    union {
        struct { uint64_t lowest[FANOUT]; uint32_t child[FANOUT]; } inner;
        struct { uint8_t fingerprint[ENTRIES]; uint64_t pad[5], entry[ENTRIES][2]; } leaf;
    };
};

static char *pool;

static struct page *page_at(uint64_t number) { return (struct page *)(pool + number * PAGE_STRIDE); }

HOT uint32_t child_of(const struct page *p, uint64_t key) {
    uint64_t at = 0;
    for (uint64_t i = 1; i < FANOUT; i++)
        at += p->inner.lowest[i] <= key;
    return p->inner.child[at];
}

HOT uint64_t find_in_leaf(const struct page *p, uint64_t key) {
    uint64_t i = key % ENTRIES;
    return p->leaf.fingerprint[i] == (uint8_t)mix(key) ? p->leaf.entry[i][1] : 0;
}

HOT uint64_t look_up(uint64_t key) {
    uint32_t below = child_of(page_at(0), key);
    return find_in_leaf(page_at(child_of(page_at(below), key)), key);
}

int main(int argc, char **argv) {
    uint64_t times = argument(argc, argv, 1, 1 << 30) * 1000, inner = argument(argc, argv, 2, FANOUT), sum = 0;
    uint64_t keys = inner * FANOUT * ENTRIES, state = 1;
    pool = memory(PAGE, MOST_PAGES * PAGE_STRIDE);
    for (uint64_t n = 0; n <= inner; n++)
        memset(page_at(n)->inner.lowest, -1, sizeof page_at(n)->inner.lowest);
    for (uint64_t key = 0; key < keys; key++) {
        uint64_t leaf = key / ENTRIES, below = leaf / FANOUT, i = key % ENTRIES;
        struct page *root = page_at(0), *middle = page_at(1 + below), *p = page_at(1 + inner + leaf);
        root->inner.lowest[below] = below * FANOUT * ENTRIES;
        root->inner.child[below] = (uint32_t)(1 + below);
        middle->inner.lowest[leaf % FANOUT] = leaf * ENTRIES;
        middle->inner.child[leaf % FANOUT] = (uint32_t)(1 + inner + leaf);
        p->leaf.fingerprint[i] = (uint8_t)mix(key);
        p->leaf.entry[i][0] = key;
        p->leaf.entry[i][1] = mix(key);
    }
    uint64_t begun = now_ns();
    for (uint64_t i = 0; i < times; i++) {
        state = (state + sum) * 6364136223846793005u + 1442695040888963407u;
        sum = look_up((state >> 32) * keys >> 32);
    }
    return report(sum, begun);
}
