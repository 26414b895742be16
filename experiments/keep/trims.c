/* SPDX-License-Identifier: MIT OR Apache-2.0
 *
 * Does not gain: after each batch of 24 MiB, which glibc would keep, the program calls malloc_trim. It returns the memory
 * under any thresholds. */
#include "work.h"
#include <malloc.h>

enum { BATCH = 24 << 20, WORDS = BATCH / sizeof(uint64_t) };

static uint64_t batch(uint64_t *words, uint64_t seed)
{
    uint64_t sum = 0;
    for (size_t word = 0; word < WORDS; word++)
        words[word] = seed + 3 * word;
    for (size_t word = 0; word < WORDS; word += 8)
        sum += words[word] ^ sum >> 5;
    return sum;
}

int main(int argc, char **argv)
{
    size_t batches = amount_of_work(argc, argv, 15);
    uint64_t checksum = 0;
    for (size_t number = 0; number < batches; number++) {
        uint64_t *words = (uint64_t *)allocated(malloc(BATCH));
        checksum = mix(checksum + batch(words, number));
        free(words);
        malloc_trim(0);
    }
    return print_checksum(checksum);
}
