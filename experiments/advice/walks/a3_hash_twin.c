/* Dictionary as one flat table with open addressing, half full. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#define N 1000000u
#define SLOTS (1u << 21)
#define QUERIES 600000u

struct slot {
    uint64_t key, count;
};

static struct slot *table;

static uint64_t mix(uint64_t z)
{
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ull;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebull;
    return z ^ (z >> 31);
}

static inline struct slot *flat_find(uint64_t key)
{
    uint64_t h = mix(key) & (SLOTS - 1);
    while (table[h].key && table[h].key != key)
        h = (h + 1) & (SLOTS - 1);
    return &table[h];
}

int main(void)
{
    table = calloc(SLOTS, sizeof *table);
    for (uint32_t i = 0; i < N; i++) {
        uint64_t key = (uint64_t)i * 3 + 1;
        struct slot *n = flat_find(key);
        n->key = key;
        n->count = mix(i) & 0xffff;
    }
    uint64_t sum = 0, s = 12345;
    for (uint32_t i = 0; i < QUERIES; i++) {
        s = s * 6364136223846793005ull + 1442695040888963407ull;
        const struct slot *n = flat_find((s >> 33) % (3ull * N / 2) * 2 + 1);
        sum += n->key ? n->count : 1;
    }
    printf("%016llx\n", (unsigned long long)sum);
    return 0;
}
