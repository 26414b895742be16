/* SPDX-License-Identifier: MIT OR Apache-2.0
 *
 * Receive queue scan: 40 message buffers of 8 KiB, headers already staggered by
 * one line each.  40 pages at an 8 KiB distance fit the first-level TLB. */
#include <stdio.h>
#include <stdlib.h>
#include <stdint.h>
#include <string.h>
#define BUFS 40
#define BSIZE 8192
struct msg { uint64_t seq; uint32_t len, flags; };
static struct msg *slot[BUFS];

static __attribute__((noinline)) uint64_t scan(uint64_t acc, uint64_t now, long n)
{
    for (long i = 0; i < n; i++) {
        const struct msg *m = slot[i];
        acc += (m->seq ^ now) * m->len + m->flags;
    }
    return acc;
}

int main(int argc, char **argv)
{
    long rounds = argc > 1 ? atol(argv[1]) : 14000000;
    char *mem = aligned_alloc(BSIZE, (BUFS + 1) * BSIZE);
    if (!mem) return 1;
    memset(mem, 0, (BUFS + 1) * BSIZE);
    for (int i = 0; i < BUFS; i++) {
#ifdef TWIN
        slot[i] = (struct msg *)(mem + (size_t)i * 64);
#else
        slot[i] = (struct msg *)(mem + (size_t)i * BSIZE + (size_t)i * 64);
#endif
        slot[i]->seq = i * 1000003ull; slot[i]->len = 60 + i * 13; slot[i]->flags = i & 5;
    }
    uint64_t acc = 0;
    for (long t = 0; t < rounds; t++)
        acc = scan(acc ^ (acc >> 7), (uint64_t)t, BUFS);
    printf("%016llx\n", (unsigned long long)acc);
    free(mem);
    return 0;
}
