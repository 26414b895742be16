/* SPDX-License-Identifier: MIT OR Apache-2.0
 *
 * Allocates a block in each round, fills it and frees it: the C library maps, and the kernel clears, the same memory again
 * and again. --reuse allocates it once, which is the cure. */
#include "subject.h"

static __attribute__((noinline)) uint64_t fill(uint64_t *block, uint64_t words, uint64_t round) {
    uint64_t sum = 0;
    for (uint64_t at = 0; at < words; at++)
        block[at] = at ^ round;
    for (uint64_t at = 0; at < words; at += 64)
        sum += block[at];
    return sum;
}

int main(int argc, char **argv) {
    uint64_t rounds = 20, bytes = 36u << 20, reuse = 0;
    const struct subject_option options[] = {
        {"rounds", "times that a block is filled", &rounds, 0},
        {"bytes", "of a block", &bytes, 0},
        {"reuse", "1 to allocate one block for all rounds", &reuse, 0},
        {0},
    };
    subject_options(argc, argv, "Allocates, fills and frees a block in each round.", options);
    if (rounds < 1 || bytes < 4096)
        subject_fail(argv[0], "--rounds is at least 1, --bytes at least 4096");
    uint64_t *block = NULL, sum = 0;
    double from = subject_now_ns();
    for (uint64_t round = 0; round < rounds; round++) {
        if (!block)
            block = malloc(bytes);
        if (!block)
            subject_fail(argv[0], "not enough memory for that size");
        sum += fill(block, bytes / sizeof *block, round);
        if (!reuse) {
            free(block);
            block = NULL;
        }
    }
    double ms = (subject_now_ns() - from) / 1e6 / (double)rounds;
    free(block);
    printf("churn: rounds %llu, bytes %llu, sum %llu, ms_per_round %.3f\n", (unsigned long long)rounds,
           (unsigned long long)bytes, (unsigned long long)sum, ms);
    return 0;
}
