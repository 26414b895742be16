/* SPDX-License-Identifier: MIT OR Apache-2.0
 *
 * Does not gain: each request has a region of 8 MiB that the program maps and unmaps itself, and a scratch of 8 MiB that
 * it empties by madvise. malloc has no part in it. */
#define _DEFAULT_SOURCE
#include "work.h"
#include <sys/mman.h>

enum { REGION = 8 << 20, WORDS = REGION / sizeof(uint64_t) };

static uint64_t *mapped(void)
{
    void *region = mmap(NULL, REGION, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    return (uint64_t *)allocated(region == MAP_FAILED ? NULL : region);
}

static uint64_t request(uint64_t *region, uint64_t *scratch, uint64_t seed)
{
    uint64_t sum = 0;
    for (size_t word = 0; word < WORDS; word++)
        region[word] = seed + word;
    for (size_t word = 0; word < WORDS; word++)
        scratch[word] = region[word] ^ region[WORDS - 1 - word];
    for (size_t word = 0; word < WORDS; word += 8)
        sum += scratch[word];
    return sum;
}

int main(int argc, char **argv)
{
    size_t requests = amount_of_work(argc, argv, 20);
    uint64_t checksum = 0, *scratch = mapped();
    for (size_t number = 0; number < requests; number++) {
        uint64_t *region = mapped();
        checksum = mix(checksum + request(region, scratch, number));
        munmap(region, REGION);
        madvise(scratch, REGION, MADV_DONTNEED);
    }
    return print_checksum(checksum);
}
