/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Object cache with LRU eviction; entries hold the value inline. */
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define N_ENTRIES 200000u
#define N_KEYS    300000u
#define N_BUCKETS 262144u
#define GETS_PER_SEC 9500000.0

#ifdef FIXED
struct entry {
    struct entry *hash_next;
    uint64_t key;
    struct entry *lru_prev;
    struct entry *lru_next;
    uint32_t hits;
    uint32_t length;
};
struct content {
    char     etag[48];
    uint64_t stored_at;
    uint64_t expires;
    char     head[112];
    char     body[176];
    char     type[56];
    char     tail[56];
    uint64_t origin;
};
#else
struct entry {
    struct entry *hash_next;
    char     etag[48];
    uint64_t stored_at;
    uint64_t expires;
    uint64_t key;
    char     head[112];
    struct entry *lru_prev;
    char     body[176];
    struct entry *lru_next;
    char     type[56];
    uint32_t hits;
    uint32_t length;
    char     tail[56];
    uint64_t origin;
};
#endif

static struct entry *pool;
#ifdef FIXED
static struct content *contents;
#define C(e) (&contents[(e) - pool])
#else
#define C(e) (e)
#endif
static struct entry *bucket[N_BUCKETS];
static struct entry *mru, *lru;
static uint32_t used;

static uint32_t hash(uint64_t k)
{
    k *= 0x9e3779b97f4a7c15ull;
    return (uint32_t)(k >> 40) & (N_BUCKETS - 1);
}

static struct entry *lookup(uint64_t key)
{
    struct entry *e = bucket[hash(key)];
    while (e && e->key != key)
        e = e->hash_next;
    return e;
}

static void lru_unlink(struct entry *e)
{
    if (e->lru_prev) e->lru_prev->lru_next = e->lru_next; else mru = e->lru_next;
    if (e->lru_next) e->lru_next->lru_prev = e->lru_prev; else lru = e->lru_prev;
}

static void lru_push(struct entry *e)
{
    e->lru_prev = NULL;
    e->lru_next = mru;
    if (mru) mru->lru_prev = e; else lru = e;
    mru = e;
}

static void hash_remove(struct entry *e)
{
    struct entry **pp = &bucket[hash(e->key)];
    while (*pp != e)
        pp = &(*pp)->hash_next;
    *pp = e->hash_next;
}

static struct entry *store(uint64_t key, uint64_t now)
{
    struct entry *e;
    if (used < N_ENTRIES) {
        e = &pool[used++];
    } else {
        e = lru;
        lru_unlink(e);
        hash_remove(e);
    }
    e->key = key;
    e->hits = 0;
    e->length = 40 + (uint32_t)(key % 300);
    C(e)->stored_at = now;
    C(e)->expires = now + 100000;
    C(e)->origin = key >> 3;
    memset(C(e)->head, (int)(key & 127), sizeof C(e)->head);
    memset(C(e)->body, (int)((key >> 4) & 127), sizeof C(e)->body);
    uint32_t b = hash(key);
    e->hash_next = bucket[b];
    bucket[b] = e;
    lru_push(e);
    return e;
}

static uint64_t serve(const struct entry *e)
{
    uint64_t s = C(e)->stored_at + C(e)->origin;
    for (size_t i = 0; i < sizeof C(e)->body; i += 16)
        s += (uint64_t)C(e)->body[i];
    return s + (uint64_t)C(e)->head[9];
}

int main(int argc, char **argv)
{
    double secs = argc > 1 ? atof(argv[1]) : 2;
    long n = (long)(secs * GETS_PER_SEC);
    uint64_t sum = 0, seed = 99, misses = 0;
    pool = calloc(N_ENTRIES, sizeof *pool);
    if (!pool) return 1;
#ifdef FIXED
    contents = calloc(N_ENTRIES, sizeof *contents);
    if (!contents) return 1;
#endif
    for (uint64_t k = 0; k < N_ENTRIES; k++)
        store((k * 100003) % N_ENTRIES, 0);
    printf("warm: %u entries\n", used); fflush(stdout);
    for (long i = 0; i < n; i++) {
        seed = seed * 6364136223846793005ull + 1442695040888963407ull;
        uint64_t r = seed >> 33;
        /* 19 of 20 requests go to the resident half of the key space */
        uint64_t key = (r % 20) ? (r / 20) % 150000 : (r / 20) % N_KEYS;
        struct entry *e = lookup(key);
        if (e) {
            lru_unlink(e);
            lru_push(e);
            e->hits++;
            sum += e->hits + e->length;
            if ((i & 63) == 0)
                sum ^= serve(e);
        } else {
            misses++;
            e = store(key, (uint64_t)i);
            sum += e->length;
        }
    }
    printf("checksum %016llx misses %llu\n", (unsigned long long)sum,
           (unsigned long long)misses);
    return 0;
}
