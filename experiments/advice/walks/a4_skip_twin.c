/* Ordered index as a dense answer table over the key space: successor queries. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#define N 200000u
#define SPACE (N * 16u)
#define LEVELS 10
#define QUERIES 260000u

static uint64_t s = 77;
static uint32_t rnd32(void)
{
    s = s * 6364136223846793005ull + 1442695040888963407ull;
    return (uint32_t)(s >> 32);
}

static uint32_t value_of(uint32_t key)
{
    return (key ^ (key >> 7)) * 2654435761u;
}

__attribute__((noinline)) static uint64_t table_successor(const uint32_t *answer, uint32_t key)
{
    return answer[key];
}

int main(void)
{
    uint32_t *perm = malloc(N * sizeof *perm), *key = malloc(N * sizeof *key);
    uint8_t *height = malloc(N);
    for (uint32_t i = 0; i < N; i++) { /* same random numbers as with the skip list */
        perm[i] = i;
        height[i] = 1;
        for (uint32_t r = rnd32(); (r & 3) == 0 && height[i] < LEVELS; r >>= 2)
            height[i]++;
    }
    for (uint32_t i = N - 1; i > 0; i--) {
        uint32_t j = rnd32() % (i + 1), t = perm[i];
        perm[i] = perm[j];
        perm[j] = t;
    }
    for (uint32_t i = 0; i < N; i++)
        key[i] = i * 16 + rnd32() % 16;
    uint32_t *answer = calloc(SPACE, sizeof *answer);
    for (uint32_t i = 0, at = 0; i < N; i++)
        for (uint32_t v = value_of(key[i]); at <= key[i]; at++)
            answer[at] = v;
    uint32_t *found = malloc(QUERIES * sizeof *found);
    for (uint32_t i = 0; i < QUERIES; i++)
        found[i] = table_successor(answer, rnd32() % SPACE);
    uint64_t sum = 1469598103934665603ull; /* the answers as text, hashed */
    for (uint32_t i = 0; i < QUERIES; i++) {
        char line[64];
        int n = snprintf(line, sizeof line, "%u %08x %.3f\n", i, found[i], found[i] / 1024.0);
        for (int k = 0; k < n; k++)
            sum = (sum ^ (uint8_t)line[k]) * 1099511628211ull;
    }
    printf("%016llx\n", (unsigned long long)sum);
    return 0;
}
