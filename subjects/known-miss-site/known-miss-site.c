/* SPDX-License-Identifier: MIT OR Apache-2.0
 *
 * Nearly all cache misses at one line: a walk in random order over --size bytes, a line at a time. That line takes all
 * page faults of the first round too, one a page, so that the place is known on a machine that cannot count misses.
 * Between the steps it computes, at other lines, so that time and misses fall apart. */
#include "subject.h"
#include <sys/mman.h>

/* A store, so that the first touch of a page takes one fault: a load would map the zero page first. */
static __attribute__((noinline)) uint64_t touch(volatile uint8_t *at) {
    *at = 1; /* known miss site */
    return 1;
}

static __attribute__((noinline)) uint64_t compute(uint64_t x, uint64_t rounds) {
    while (rounds--)
        x = x * 6364136223846793005u + 1442695040888963407u;
    return x;
}

int main(int argc, char **argv) {
    uint64_t bytes = 64 << 20, steps = 2000000, rounds = 100;
    const struct subject_option options[] = {
        {"size", "bytes walked", &bytes, 0},
        {"steps", "accesses after the first round", &steps, 0},
        {"compute", "multiplications between two", &rounds, 0},
        {0},
    };
    subject_options(argc, argv, "A known miss site: one line has the misses, another the time.", options);
    if (bytes < 4096)
        subject_fail(argv[0], "--size needs at least 4096 bytes");
    uint8_t *memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED)
        subject_fail(argv[0], "not enough memory for that size");
    madvise(memory, bytes, MADV_NOHUGEPAGE);
    uint64_t pages = bytes / 4096, seed = 1, sum = 0;
    for (uint64_t i = 0; i < pages; i++)
        sum += touch(memory + i * 4096);
    for (uint64_t i = 0; i < steps; i++) {
        sum += touch(memory + subject_random(&seed) % (bytes / 64) * 64);
        sum += compute(sum, rounds) & 1;
    }
    printf("known-miss-site: faults=%llu steps=%llu sum=%llu\n", (unsigned long long)pages, (unsigned long long)steps,
           (unsigned long long)sum);
    return 0;
}
