/* SPDX-License-Identifier: MIT OR Apache-2.0
 *
 * Several large malloc blocks added up element by element, all in lock-step. Mapped blocks all begin at the same offset
 * of their pages, so the elements of one step share a few cache sets. `nearmiss apply color --blocks` spreads them. */
#include "subject.h"

enum { MOST_BLOCKS = 1024 };

static volatile uint64_t *block[MOST_BLOCKS];

static __attribute__((noinline)) uint64_t add_up(uint64_t blocks, uint64_t elements) {
    uint64_t sum = 0;
    for (uint64_t i = 0; i < elements; i++)
        for (uint64_t b = 0; b < blocks; b++)
            sum += block[b][i];
    return sum;
}

int main(int argc, char **argv) {
    uint64_t blocks = 64, rounds = 10, elements = 1 << 16;
    const struct subject_option options[] = {
        {"blocks", "malloc blocks", &blocks, 0},
        {"elements", "of 8 bytes a block", &elements, 0},
        {"rounds", "times that all of them are added up", &rounds, 0},
        {0},
    };
    subject_options(argc, argv, "Adds up large malloc blocks in lock-step; they begin at the same page offset.", options);
    if (blocks < 1 || blocks > MOST_BLOCKS || rounds < 1 || elements < 1)
        subject_fail(argv[0], "--blocks is 1 to 1024, --rounds and --elements at least 1");
    uint64_t sum = 0, expected = 0;
    for (uint64_t b = 0; b < blocks; b++) {
        block[b] = malloc(elements * sizeof **block);
        if (!block[b])
            subject_fail(argv[0], "not enough memory for that size");
        for (uint64_t i = 0; i < elements; i++)
            expected += block[b][i] = b + i;
    }
    double from = subject_now_ns();
    for (uint64_t round = 0; round < rounds; round++)
        sum += add_up(blocks, elements);
    double ns = (subject_now_ns() - from) / (double)(rounds * elements * blocks);
    printf("lock-step: blocks %llu, elements %llu, ns_per_element %.3f\n", (unsigned long long)blocks,
           (unsigned long long)elements, ns);
    return sum != expected * rounds;
}
