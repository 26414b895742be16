/* SPDX-License-Identifier: MIT OR Apache-2.0
 *
 * Running sums of one malloc block into another. The second begins 16 bytes further within its page than the first, so
 * each load has the offset of a store just before it, to another page, and waits as if it were of the same address
 * ("4K aliasing"). `nearmiss apply color --blocks 16384` moves them apart. */
#include "subject.h"

static __attribute__((noinline)) uint64_t add_up(const uint64_t *from, uint64_t *to, uint64_t elements) {
    uint64_t sum = 0;
    for (uint64_t i = 0; i < elements; i++)
        to[i] = sum += from[i];
    return sum;
}

int main(int argc, char **argv) {
    uint64_t elements = 2048, rounds = 200000;
    const struct subject_option options[] = {
        {"elements", "of 8 bytes a block", &elements, 0},
        {"rounds", "times that all of them are added up", &rounds, 0},
        {0},
    };
    subject_options(argc, argv, "Running sums of one malloc block into another at nearly the same page offset.", options);
    if (elements < 512 || rounds < 1)
        subject_fail(argv[0], "--elements is at least 512, --rounds at least 1");
    uint64_t *from = malloc(elements * sizeof *from);
    uint64_t *to = malloc(elements * sizeof *to);
    if (!from || !to)
        subject_fail(argv[0], "not enough memory for that size");
    uint64_t sum = 0, expected = 0;
    for (uint64_t i = 0; i < elements; i++)
        expected += from[i] = i;
    double began = subject_now_ns();
    for (uint64_t round = 0; round < rounds; round++)
        sum += add_up(from, to, elements);
    double ns = (subject_now_ns() - began) / (double)(rounds * elements);
    printf("running-sums: elements %llu, ns_per_element %.4f\n", (unsigned long long)elements, ns);
    return sum != expected * rounds;
}
