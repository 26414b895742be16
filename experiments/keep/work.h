/* SPDX-License-Identifier: MIT OR Apache-2.0
 *
 * Shared by the programs of this folder. Each takes its amount of work as its argument, and prints a checksum. With
 * -DTWIN a program keeps the memory that it otherwise frees and allocates again. */
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#ifdef TWIN
enum { KEEPS = 1 };
#else
enum { KEEPS = 0 };
#endif

static inline uint64_t mix(uint64_t word)
{
    word = (word ^ word >> 30) * 0xbf58476d1ce4e5b9u;
    word = (word ^ word >> 27) * 0x94d049bb133111ebu;
    return word ^ word >> 31;
}

static inline size_t amount_of_work(int argc, char **argv, size_t otherwise)
{
    return argc > 1 ? strtoul(argv[1], NULL, 10) : otherwise;
}

static inline void *allocated(void *block)
{
    if (!block) {
        fputs("no memory\n", stderr);
        exit(2);
    }
    return block;
}

static inline int print_checksum(uint64_t checksum)
{
    return printf("%016lx\n", (unsigned long)checksum) < 0;
}
