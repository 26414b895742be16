/* SPDX-License-Identifier: MIT OR Apache-2.0
 *
 * A sort's runs: records fill a chain of blocks of 64 KiB, 12 MiB in all, which is folded and freed from its end. No
 * block was ever a mapping, so that 128 KiB at the top of the heap are enough for glibc to return them. */
#include "work.h"

enum { BLOCKS = 192, WORDS = 8190 };

struct block {
    struct block *before;
    uint64_t words[WORDS];
};

static struct block *spare;

static struct block *take(struct block *before)
{
    struct block *block = spare;
    if (block)
        spare = block->before;
    else
        block = (struct block *)allocated(malloc(sizeof *block));
    block->before = before;
    return block;
}

static void give_back(struct block *block)
{
    if (KEEPS) {
        block->before = spare;
        spare = block;
    } else {
        free(block);
    }
}

static uint64_t run(uint64_t seed)
{
    struct block *last = NULL;
    for (size_t number = 0; number < BLOCKS; number++) {
        last = take(last);
        for (size_t word = 0; word < WORDS; word++)
            last->words[word] = seed + number * word;
    }
    uint64_t sum = 0;
    while (last) {
        struct block *before = last->before;
        for (size_t word = 0; word < WORDS; word++)
            sum += last->words[word] ^ sum >> 9;
        give_back(last);
        last = before;
    }
    return sum;
}

int main(int argc, char **argv)
{
    size_t runs = amount_of_work(argc, argv, 20);
    uint64_t checksum = 0;
    for (size_t number = 0; number < runs; number++)
        checksum = mix(checksum + run(number));
    return print_checksum(checksum);
}
