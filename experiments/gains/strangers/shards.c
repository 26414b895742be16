/* SPDX-License-Identifier: MIT OR Apache-2.0
 *
 * Poller over 64 ring buffers, each in a shard aligned to 1 MiB; the ring's head
 * and tail lie at the start of the shard.  The twin puts them at a spread offset. */
#define _GNU_SOURCE
#include <stdio.h>
#include <stdlib.h>
#include <stdint.h>
#include <sys/mman.h>
#define RINGS 64
#define SHARD (1u << 20)
#ifdef TWIN
#define OFF(i) ((size_t)(i) * (4096 + 64))
#else
#define OFF(i) ((size_t)0)
#endif
struct ring { uint64_t head, tail, limit, drops; };
static struct ring *ring[RINGS];

static __attribute__((noinline)) uint64_t poll_all(uint64_t acc, long n)
{
    for (long i = 0; i < n; i++) {
        const struct ring *q = ring[i];
        acc += (q->head - q->tail) ^ q->limit;
    }
    return acc;
}

int main(int argc, char **argv)
{
    long rounds = argc > 1 ? atol(argv[1]) : 1200000;
    char *mem = aligned_alloc(SHARD, (size_t)RINGS * SHARD);
    if (!mem) return 1;
    madvise(mem, (size_t)RINGS * SHARD, MADV_NOHUGEPAGE);
    for (int i = 0; i < RINGS; i++) {
        ring[i] = (struct ring *)(mem + (size_t)i * SHARD + OFF(i));
        ring[i]->head = 100 + i * 7; ring[i]->tail = i;
        ring[i]->limit = 4096 - i; ring[i]->drops = 0;
    }
    uint64_t acc = 0;
    for (long t = 0; t < rounds; t++) {
        acc = poll_all(acc * 3, RINGS);
        struct ring *q = ring[(t * 29) & (RINGS - 1)];
        q->head += 3;
        q->tail += acc & 3;
    }
    printf("%016llx\n", (unsigned long long)acc);
    free(mem);
    return 0;
}
