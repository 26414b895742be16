/* SPDX-License-Identifier: MIT OR Apache-2.0
 *
 * Scheduler tick: ten tasks, each with a 4 KiB control block, of which the first line
 * holds tick counters.  All ten lines fall on one set, but ten ways suffice. */
#include <stdio.h>
#include <stdlib.h>
#include <stdint.h>
#include <string.h>
#define TASKS 10
#define BLK 4096
#ifdef TWIN
#define COLOUR(i) (64 * (i))
#else
#define COLOUR(i) 0
#endif
static __attribute__((noinline)) uint32_t tick(uint32_t **cnt, long n, uint32_t x)
{
    for (long i = 0; i < n; i++) {
        x ^= x << 13; x ^= x >> 17; x ^= x << 5;
        *cnt[i] += x & 7;
    }
    return x;
}

int main(int argc, char **argv)
{
    long rounds = argc > 1 ? atol(argv[1]) : 20000000;
    char *mem = aligned_alloc(4096, TASKS * BLK);
    if (!mem) return 1;
    memset(mem, 0, TASKS * BLK);
    _Alignas(64) uint32_t *cnt[16];
    for (int i = 0; i < TASKS; i++)                 /* counter of priority class i */
        cnt[i] = (uint32_t *)(mem + (size_t)i * BLK + COLOUR(i)) + i;
    uint32_t x = 2463534242u;
    for (long t = 0; t < rounds; t++)
        x = tick(cnt, TASKS, x);
    uint64_t s = x;
    for (int i = 0; i < TASKS; i++) s = s * 1000003 + *cnt[i];
    printf("%016llx\n", (unsigned long long)s);
    free(mem);
    return 0;
}
