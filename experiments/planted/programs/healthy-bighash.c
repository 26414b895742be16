/* Dedup index: one big open-addressing table on huge pages, probed at random (misses are inherent). */
#define _GNU_SOURCE
#include <stdio.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
enum { BITS = 25 };
int main(void)
{
    size_t bytes = sizeof(uint64_t) << BITS;
    uint64_t *t = aligned_alloc(2 << 20, bytes);
    madvise(t, bytes, MADV_HUGEPAGE);
    for (size_t i = 0; i < (1u << BITS); i += 512) t[i] = 0;
    uint64_t x = 9, dup = 0;
    for (int i = 0; i < 12000000; i++) {
        x ^= x << 13; x ^= x >> 7; x ^= x << 17;
        uint64_t fp = (x % 9000000 + 1) * 0x9E3779B97F4A7C15ull;
        size_t h = fp >> (64 - BITS);
        while (t[h] && t[h] != fp) h = (h + 1) & ((1u << BITS) - 1);
        if (t[h]) dup++; else t[h] = fp;
        x += dup & 1;
    }
    printf("%lu\n", dup);
    return 0;
}
