/* SPDX-License-Identifier: MIT OR Apache-2.0
 *
 * Two threads each count values into a histogram of 256 bins. The bins of both alternate in one array, so every line is
 * written by both CPUs. Each thread of the twin has an array of its own.
 *
 * SIZE: thousands of values a thread. */
#include "../recall/planted.h"

enum { THREADS = 2, BINS = 256 };

static alignas(2 * LINE) volatile uint32_t bins[THREADS * BINS];

HOT void count_values(unsigned self, uint64_t values) {
    uint64_t state = self + 1;
    for (uint64_t i = 0; i < values; i++) {
        state = state * 6364136223846793005u + 1442695040888963407u;
        uint64_t bin = state >> 56;
        bins[TWINNED ? self * BINS + bin : bin * THREADS + self]++;
    }
}

int main(int argc, char **argv) {
    uint64_t values = argument(argc, argv, 1, 1 << 30) * 1000, digest = 0;
    uint64_t begun = now_ns();
    on_threads(THREADS, count_values, values);
    for (unsigned self = 0; self < THREADS; self++)
        for (uint64_t bin = 0; bin < BINS; bin++)
            digest = mix(digest + bins[TWINNED ? self * BINS + bin : bin * THREADS + self]);
    return report(digest, begun);
}
