/* SPDX-License-Identifier: MIT OR Apache-2.0
 *
 * Each thread counts in an element of its own of a global array. The elements lie on one line, which every addition
 * takes away from the other CPU. Each element of the twin has lines of its own.
 *
 * SIZE: thousands of additions a thread. SHAPE: number of threads.
 *
 *: kind = "sharing"
 *: names = ["hits"]
 *: reach = "inside"
 *: traced = 300
 *: measured = 15000
 *: [[case]]
 *: shape = [2]
 *: [[case]]
 *: shape = [4]
 */
#include "../planted.h"

enum { MOST_COUNTERS = 8 };

static struct {
    ALONE volatile uint64_t count;
} hits[MOST_COUNTERS];

HOT void count_hits(unsigned self, uint64_t times) {
    uint64_t state = self + 1;
    for (uint64_t i = 0; i < times; i++) {
        state = mix(state + i);
        hits[self].count += state & 1;
    }
}

int main(int argc, char **argv) {
    uint64_t times = argument(argc, argv, 1, 1 << 30) * 1000, digest = 0;
    unsigned threads = (unsigned)argument(argc, argv, 2, MOST_COUNTERS);
    uint64_t begun = now_ns();
    on_threads(threads, count_hits, times);
    for (unsigned i = 0; i < threads; i++)
        digest = mix(digest + hits[i].count);
    return report(digest, begun);
}
