/* Ledger kept as an array of 64-byte entries, in the order in which it is read. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#define N (1u << 19)
#define PASSES 5

struct entry {
    uint64_t stamp;
    uint32_t id, weight;
    uint64_t pay[6];
};

static uint64_t state = 88172645463325252ull;
static uint64_t rnd(void)
{
    uint64_t z = (state += 0x9e3779b97f4a7c15ull);
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ull;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebull;
    return z ^ (z >> 31);
}

static uint64_t stretch(uint64_t x)
{
    for (int r = 0; r < 120; r++)
        x = (x ^ (x >> 29)) * 0xbf58476d1ce4e5b9ull + (uint64_t)r;
    return x;
}

static void fill(struct entry *e, uint32_t id)
{
    e->id = id;
    e->weight = (id * 2654435761u) >> 20;
    uint64_t s = stretch(id);
    for (int k = 0; k < 6; k++)
        e->pay[k] = s + (uint64_t)k * id;
}

__attribute__((noinline)) static uint64_t walk_array(const struct entry *p, uint64_t seed)
{
    uint64_t sum = seed;
    for (const struct entry *end = p + N; p != end; p++) {
        sum += (p->pay[2] ^ seed) * p->weight;
    }
    return sum;
}

int main(void)
{
    struct entry *pool = aligned_alloc(64, (size_t)N * sizeof *pool);
    uint32_t *order = malloc(N * sizeof *order);
    for (uint32_t i = 0; i < N; i++) {
        order[i] = i;
    }
    for (uint32_t i = N - 1; i > 0; i--) {
        uint32_t j = (uint32_t)(rnd() % (i + 1)), t = order[i];
        order[i] = order[j];
        order[j] = t;
    }
    for (uint32_t i = 0; i < N; i++)
        fill(&pool[i], order[i]);
    uint64_t sum = 0;
    for (int k = 0; k < PASSES; k++)
        sum = walk_array(pool, sum);
    printf("%016llx\n", (unsigned long long)sum);
    return 0;
}
