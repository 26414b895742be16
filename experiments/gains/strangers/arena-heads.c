/* SPDX-License-Identifier: MIT OR Apache-2.0
 *
 * Request router: hashes a request, the hash picks one of 40 arenas of 32 KiB,
 * with its header (generation = seed of the next hash, use count) at its start.
 * The twin keeps the headers together in an array of their own. */
#include <stdio.h>
#include <stdlib.h>
#include <stdint.h>
#include <string.h>
#define ARENAS 40
#define ASIZE 32768
struct hdr { uint64_t uses, gen, last; uint64_t pad[5]; };
static struct hdr *head[ARENAS];
static uint64_t req[512];

static __attribute__((noinline)) uint64_t route(uint64_t h, long n)
{
    for (long k = 0; k < n; k++) {
        struct hdr *a = head[((h >> 32) * ARENAS) >> 32];
        const uint64_t *m = req + ((k * 6) & 496);
        h ^= a->gen;
        for (int i = 0; i < 6; i++)
            h = (h ^ m[i]) * 0x9E3779B97F4A7C15ull;
        h ^= h >> 29;
        a->uses++;
        a->last = h;
    }
    return h;
}

int main(int argc, char **argv)
{
    long rounds = argc > 1 ? atol(argv[1]) : 25000;
    char *mem = aligned_alloc(ASIZE, (size_t)ARENAS * ASIZE);
    if (!mem) return 1;
#ifdef TWIN
    struct hdr *compact = aligned_alloc(4096, 4096);
    if (!compact) return 1;
#endif
    uint64_t r = 88172645463325252ull;
    for (int i = 0; i < ARENAS; i++) {
#ifdef TWIN
        head[i] = compact + i;
#else
        head[i] = (struct hdr *)(mem + (size_t)i * ASIZE);
#endif
        memset(head[i], 0, sizeof *head[i]);
        r ^= r << 13; r ^= r >> 7; r ^= r << 17;
        head[i]->gen = r;
    }
    for (int i = 0; i < 512; i++) { r ^= r << 13; r ^= r >> 7; r ^= r << 17; req[i] = r; }
    uint64_t h = 1;
    for (long t = 0; t < rounds; t++)
        h = route(h, 1000);
    uint64_t s = h;
    for (int i = 0; i < ARENAS; i++) s = s * 31 + head[i]->uses + head[i]->last;
    printf("%016llx\n", (unsigned long long)s);
    return 0;
}
