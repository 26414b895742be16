/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Open addressing, linear probing, load 0.8; most lookups are for absent keys, so probing is nearly all. Twin: the hashes
   in an array of their own. As proposed for the twin, what a found entry needs lies in half a line. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#define SLOTS 65536
#define USED 52000
#ifdef PROPOSED
#define FIXED
#endif
static uint64_t seed = 99;
static uint32_t rnd(void) { seed = seed * 6364136223846793005ull + 1442695040888963407ull; return seed >> 33; }
struct entry {
#ifndef FIXED
    uint64_t hash;
#endif
#ifdef PROPOSED
    _Alignas(32) char key[16];
    uint64_t value, hits;
};
#else
    char key[16];
    uint64_t value, hits, expires;
};
#endif
struct table {
    struct entry *entries;
#ifdef FIXED
    uint64_t *hashes;
#endif
#ifdef PROPOSED
    uint64_t *expires;
#endif
};
#ifdef FIXED
#define HASH(t, i) (t)->hashes[i]
#else
#define HASH(t, i) (t)->entries[i].hash
#endif
#ifdef PROPOSED
#define EXPIRES(t, i) (t)->expires[i]
#else
#define EXPIRES(t, i) (t)->entries[i].expires
#endif
static uint64_t hash_key(const char *k)
{
    uint64_t a, b; memcpy(&a, k, 8); memcpy(&b, k + 8, 8);
    uint64_t h = (a ^ (b * 0x9e3779b97f4a7c15ull)) * 0xff51afd7ed558ccdull;
    h ^= h >> 32; return h ? h : 1;
}
static void make_key(char *k, uint64_t n) { uint64_t m = n * 0xc4ceb9fe1a85ec53ull; memcpy(k, &n, 8); memcpy(k + 8, &m, 8); }
__attribute__((noinline)) static void insert(struct table *t, const char *key, uint64_t value)
{
    uint64_t h = hash_key(key); size_t i = h & (SLOTS - 1);
    while (HASH(t, i)) i = (i + 1) & (SLOTS - 1);
    HASH(t, i) = h; memcpy(t->entries[i].key, key, 16);
    t->entries[i].value = value; t->entries[i].hits = 0; EXPIRES(t, i) = value + 1000;
}
__attribute__((noinline)) static struct entry *find(struct table *t, const char *key)
{
    uint64_t h = hash_key(key); size_t i = h & (SLOTS - 1);
    for (uint64_t c; (c = HASH(t, i)) != 0; i = (i + 1) & (SLOTS - 1))
        if (c == h && memcmp(t->entries[i].key, key, 16) == 0) return &t->entries[i];
    return NULL;
}
int main(int argc, char **argv)
{
    int rounds = argc > 1 ? atoi(argv[1]) : 20;
    struct table t;
    char key[16];
#ifdef PROPOSED
    t.entries = memset(aligned_alloc(32, SLOTS * sizeof *t.entries), 0, SLOTS * sizeof *t.entries);
    t.expires = calloc(SLOTS, sizeof *t.expires);
#else
    t.entries = calloc(SLOTS, sizeof *t.entries);
#endif
#ifdef FIXED
    t.hashes = calloc(SLOTS, sizeof *t.hashes);
#endif
    for (uint64_t i = 0; i < USED; i++) { make_key(key, i * 2654435761u + 17); insert(&t, key, i); }
    uint64_t sum = 0, found = 0;
    for (int r = 0; r < rounds; r++)
        for (int q = 0; q < 100000; q++) {
            uint64_t n = rnd() % (USED * 10);          /* one in ten is present */
            make_key(key, n * 2654435761u + 17);
            struct entry *e = find(&t, key);
            if (e) { found++; e->hits++; sum += e->value; }
        }
    printf("%llu %llu\n", (unsigned long long)found, (unsigned long long)sum);
    return 0;
}
