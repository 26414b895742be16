/* SPDX-License-Identifier: MIT OR Apache-2.0
 *
 * Two threads each sum up a table of their own and publish after each sixteenth entry how far they are; each looks at how far
 * the other one is after every 4,096th. Both words lie in one line; those of the twin in lines of their own.
 *
 * SIZE: passes over the table. */
#include "../recall/planted.h"

enum { THREADS = 2, ENTRIES = 2048, PUBLISH_EVERY = 16, READ_EVERY = 4096 };

struct word {
    ALONE volatile uint64_t done;
};

static alignas(2 * LINE) struct word words[THREADS];
static uint64_t tables[THREADS][ENTRIES], sums[THREADS * 2 * LINE / sizeof(uint64_t)];

HOT void work(unsigned self, uint64_t passes) {
    uint64_t sum = 0, done = 0;
    volatile uint64_t other = 0;
    for (uint64_t pass = 0; pass < passes; pass++) {
        for (uint64_t entry = 0; entry < ENTRIES; entry++) {
            sum = mix(sum + tables[self][entry]);
            if (++done % PUBLISH_EVERY == 0)
                words[self].done = done;
            if (done % READ_EVERY == 0)
                other = words[!self].done;
        }
    }
    (void)other;
    sums[self * 2 * LINE / sizeof(uint64_t)] = sum;
}

int main(int argc, char **argv) {
    uint64_t passes = argument(argc, argv, 1, 1 << 30), digest = 0;
    for (unsigned self = 0; self < THREADS; self++)
        for (uint64_t entry = 0; entry < ENTRIES; entry++)
            tables[self][entry] = mix(entry + self);
    uint64_t begun = now_ns();
    on_threads(THREADS, work, passes);
    for (unsigned self = 0; self < THREADS; self++)
        digest = mix(digest + sums[self * 2 * LINE / sizeof(uint64_t)] + words[self].done);
    return report(digest, begun);
}
