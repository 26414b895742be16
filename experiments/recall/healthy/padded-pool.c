/* SPDX-License-Identifier: MIT OR Apache-2.0
 *
 * Healthy: a pool of threads takes batches of work from one counter, and each thread counts on lines of its own.
 * SIZE: thousands of pieces of work. SHAPE: number of threads. */
#include "../planted.h"

enum { MOST_POOL = 8, BATCH = 4096, TABLE = 1 << 12 };

static uint64_t next_batch;

static struct {
    alignas(2 * LINE) volatile uint64_t done;
    uint64_t sum;
} mine[MOST_POOL];

static uint64_t table[TABLE];

HOT void take_work(unsigned self, uint64_t pieces) {
    uint64_t from;
    while ((from = __atomic_fetch_add(&next_batch, BATCH, __ATOMIC_RELAXED)) < pieces)
        for (uint64_t i = from; i < from + BATCH && i < pieces; i++) {
            mine[self].sum += table[mix(i) % TABLE];
            mine[self].done++;
        }
}

int main(int argc, char **argv) {
    uint64_t pieces = argument(argc, argv, 1, 1 << 20) * 1000, digest = 0;
    unsigned threads = (unsigned)argument(argc, argv, 2, MOST_POOL);
    for (uint64_t i = 0; i < TABLE; i++)
        table[i] = mix(i);
    uint64_t begun = now_ns();
    on_threads(threads, take_work, pieces);
    for (unsigned i = 0; i < threads; i++)
        digest += mine[i].sum + mine[i].done;
    return report(digest, begun);
}
