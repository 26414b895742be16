/* Dictionary with chained buckets: 32-byte nodes, about eight to a chain. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#define N 1000000u
#define BUCKETS (1u << 17)
#define QUERIES 600000u

struct hnode {
    uint64_t key;
    struct hnode *next;
    uint64_t count, pad;
};

static struct hnode *bucket[BUCKETS];

static uint64_t mix(uint64_t z)
{
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ull;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebull;
    return z ^ (z >> 31);
}

static inline struct hnode *chain_find(uint64_t key)
{
    struct hnode *n = bucket[mix(key) & (BUCKETS - 1)];
    while (n && n->key != key)
        n = n->next;
    return n;
}

int main(void)
{
    struct hnode *pool = malloc((size_t)N * sizeof *pool);
    for (uint32_t i = 0; i < N; i++) {
        struct hnode *n = &pool[i], **b;
        n->key = (uint64_t)i * 3 + 1;
        n->count = mix(i) & 0xffff;
        b = &bucket[mix(n->key) & (BUCKETS - 1)];
        n->next = *b;
        *b = n;
    }
    uint64_t sum = 0, s = 12345;
    for (uint32_t i = 0; i < QUERIES; i++) {
        s = s * 6364136223846793005ull + 1442695040888963407ull;
        const struct hnode *n = chain_find((s >> 33) % (3ull * N / 2) * 2 + 1);
        sum += n ? n->count : 1;
    }
    printf("%016llx\n", (unsigned long long)sum);
    return 0;
}
