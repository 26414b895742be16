/* SPDX-License-Identifier: MIT OR Apache-2.0
 *
 * Two threads count in 48 blocks of 24 bytes each, which were allocated in turn, so that both write to most lines. The
 * twin allocates all blocks of one thread before those of the other.
 *
 * SIZE: thousands of counts a thread. */
#include "../recall/planted.h"

enum { THREADS = 2, BLOCKS = 48 };

struct block {
    volatile uint64_t hits, bytes, last;
};

static struct block *blocks[THREADS][BLOCKS];

HOT void count(unsigned self, uint64_t counts) {
    uint64_t state = self + 7;
    for (uint64_t i = 0; i < counts; i++) {
        state = state * 6364136223846793005u + 1442695040888963407u;
        struct block *block = blocks[self][(state >> 40) % BLOCKS];
        block->hits++;
        block->bytes += state >> 56;
        block->last = i;
    }
}

int main(int argc, char **argv) {
    uint64_t counts = argument(argc, argv, 1, 1 << 30) * 1000, digest = 0;
    for (unsigned n = 0; n < THREADS * BLOCKS; n++) {
        unsigned thread = TWINNED ? n / BLOCKS : n % THREADS, at = TWINNED ? n % BLOCKS : n / THREADS;
        blocks[thread][at] = calloc(1, sizeof **blocks[0]);
        if (!blocks[thread][at])
            planted_fail("not enough memory");
    }
    uint64_t begun = now_ns();
    on_threads(THREADS, count, counts);
    for (unsigned self = 0; self < THREADS; self++)
        for (unsigned at = 0; at < BLOCKS; at++)
            digest = mix(digest + blocks[self][at]->hits + blocks[self][at]->bytes + blocks[self][at]->last);
    return report(digest, begun);
}
