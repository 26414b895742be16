/* A buffer pool of page-aligned frames; each frame's header (id, pin count, LRU links) lies in the frame.
   Transactions look pages up through a hash chain and move them to the head of the LRU list. */
#define _GNU_SOURCE
#include <stdio.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
enum { FRAMES = 1500, FRAME = 4096, BUCKETS = 2048 };
#ifndef OPS
#define OPS 16000000
#endif
struct hdr { uint32_t id, pins; struct hdr *prev, *next, *chain; uint64_t lsn; uint32_t reads, dirty; };
static char *pool;
static struct hdr *bucket[BUCKETS], lru;

static struct hdr *frame_hdr(int i)
{
    return (struct hdr *)(pool + (size_t)i * FRAME);
}
static void unlink_h(struct hdr *h) { h->prev->next = h->next; h->next->prev = h->prev; }
static void push_h(struct hdr *h) { h->next = lru.next; h->prev = &lru; lru.next->prev = h; lru.next = h; }
static struct hdr *lookup(uint32_t id)
{
    struct hdr *h = bucket[id * 2654435761u >> 21];
    while (h && h->id != id) h = h->chain;
    return h;
}
int main(void)
{
    pool = aligned_alloc(2 << 20, 8 << 20);
    madvise(pool, 8 << 20, MADV_HUGEPAGE);
    memset(pool, 0, 8 << 20);
    lru.next = lru.prev = &lru;
    for (int i = 0; i < FRAMES; i++) {
        struct hdr *h = frame_hdr(i);
        h->id = i * 3 + 1;
        uint32_t b = h->id * 2654435761u >> 21;
        h->chain = bucket[b]; bucket[b] = h;
        push_h(h);
    }
    uint64_t h_last = 0, lsn = 0, sum = 0, x = 88172645463325252ull;
    for (int op = 0; op < OPS; op++) {
        x ^= x << 13; x ^= x >> 7; x ^= x << 17;
        struct hdr *h = lookup((uint32_t)(((x >> 20) + h_last) % FRAMES) * 3 + 1);
        h->pins++;
        h_last = h->reads;
        h->reads++;
        if ((x & 7) == 0) { h->dirty = 1; h->lsn = ++lsn; }
        sum += h->lsn;
        if (h->reads & 1) { unlink_h(h); push_h(h); }
        h->pins--;
    }
    struct hdr *h = lru.next;
    for (int i = 0; i < 100; i++, h = h->next) sum = sum * 31 + h->id;
    printf("%lu %lu\n", lsn, sum);
    return 0;
}
