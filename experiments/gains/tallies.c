/* SPDX-License-Identifier: MIT OR Apache-2.0
 *
 * Two threads hash numbers of their own and add each hash to a tally and a maximum of their own. The records of both
 * lie side by side in one line; those of the twin in lines of their own.
 *
 * SIZE: thousands of numbers a thread. */
#include "../recall/planted.h"

enum { THREADS = 2, ROUNDS = 6 };

struct tally {
    ALONE volatile uint64_t sum;
    volatile uint64_t most;
};

static alignas(2 * LINE) struct tally tallies[THREADS];

HOT void add_up(unsigned self, uint64_t numbers) {
    struct tally *own = &tallies[self];
    for (uint64_t i = 0; i < numbers; i++) {
        uint64_t hash = i ^ self;
        for (int round = 0; round < ROUNDS; round++)
            hash = mix(hash + 1);
        own->sum += hash;
        if (hash > own->most)
            own->most = hash;
    }
}

int main(int argc, char **argv) {
    uint64_t numbers = argument(argc, argv, 1, 1 << 30) * 1000, digest = 0;
    uint64_t begun = now_ns();
    on_threads(THREADS, add_up, numbers);
    for (unsigned self = 0; self < THREADS; self++)
        digest = mix(digest + tallies[self].sum + tallies[self].most);
    return report(digest, begun);
}
