/* SPDX-License-Identifier: MIT OR Apache-2.0
 *
 * Rank gather over an edge list: 2048 edges into 160 vertex records of 1 KiB;
 * the rank is the record's first word.  The twin has records of 1088 bytes. */
#include <stdio.h>
#include <stdlib.h>
#include <stdint.h>
#include <string.h>
#define VERTS 160
#define EDGES 2048
#ifdef TWIN
#define REC (1024 + 64)
#else
#define REC 1024
#endif
static uint32_t dst[EDGES];

static __attribute__((noinline)) uint64_t gather(const char *v, const uint32_t *d, long n, uint64_t acc)
{
    for (long e = 0; e < n; e++)
        acc += *(const uint64_t *)(v + d[e]);
    return acc;
}

int main(int argc, char **argv)
{
    long rounds = argc > 1 ? atol(argv[1]) : 190000;
    size_t bytes = ((size_t)VERTS * REC + 4095) & ~(size_t)4095;
    char *v = aligned_alloc(4096, bytes);
    if (!v) return 1;
    memset(v, 0, bytes);
    uint64_t r = 88172645463325252ull;
    for (int i = 0; i < VERTS; i++) {
        r ^= r << 13; r ^= r >> 7; r ^= r << 17;
        *(uint64_t *)(v + (size_t)i * REC) = r;
    }
    for (int i = 0; i < EDGES; i++) {
        r ^= r << 13; r ^= r >> 7; r ^= r << 17;
        dst[i] = (uint32_t)((r >> 20) % VERTS) * REC;
    }
    uint64_t acc = 0;
    for (long t = 0; t < rounds; t++) {
        acc = gather(v, dst, EDGES, acc ^ (acc >> 9));
        *(uint64_t *)(v + (size_t)(t % VERTS) * REC) += acc & 255;
    }
    printf("%016llx\n", (unsigned long long)acc);
    free(v);
    return 0;
}
