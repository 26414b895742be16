/* Price look-ups in a sorted table: the queries are sorted as a batch and merged with it. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define N 400000u
#define QUERIES 500000u

struct item {
    uint32_t key, value;
};

static uint64_t x = 0x2545f4914f6cdd1dull;
static uint32_t rnd32(void)
{
    x ^= x << 13;
    x ^= x >> 7;
    x ^= x << 17;
    return (uint32_t)(x >> 24);
}

static uint32_t price(uint32_t key)
{
    uint32_t v = key;
    for (int r = 0; r < 120; r++)
        v = (v ^ (v >> 13)) * 0x5bd1e995u + (uint32_t)r;
    return v;
}

static void radix_sort(uint32_t *a, uint32_t *tmp, uint32_t n)
{
    for (int shift = 0; shift < 24; shift += 8) {
        uint32_t count[257];
        memset(count, 0, sizeof count);
        for (uint32_t i = 0; i < n; i++)
            count[((a[i] >> shift) & 255) + 1]++;
        for (int b = 0; b < 256; b++)
            count[b + 1] += count[b];
        for (uint32_t i = 0; i < n; i++)
            tmp[count[(a[i] >> shift) & 255]++] = a[i];
        memcpy(a, tmp, n * sizeof *a);
    }
}

__attribute__((noinline)) static uint64_t merge_lookups(const struct item *t, const uint32_t *q, uint32_t n)
{
    uint64_t sum = 0;
    uint32_t k = 0;
    for (uint32_t i = 0; i < n; i++) {
        while (k < N && t[k].key < q[i])
            k++;
        if (k < N && t[k].key == q[i])
            sum += t[k].value;
    }
    return sum;
}

int main(void)
{
    uint32_t *slot = malloc(N * sizeof *slot);
    struct item *table = malloc(N * sizeof *table);
    uint32_t *q = malloc(QUERIES * sizeof *q), *tmp = malloc(QUERIES * sizeof *q);
    for (uint32_t i = 0; i < N; i++) {
        table[i].key = i * 7 + rnd32() % 7;
        slot[i] = i;
    }
    for (uint32_t i = N - 1; i > 0; i--) { /* same order of random numbers as with the tree */
        uint32_t j = rnd32() % (i + 1), t = slot[i];
        slot[i] = slot[j];
        slot[j] = t;
    }
    for (uint32_t i = 0; i < QUERIES; i++)
        q[i] = rnd32() & 7 ? table[rnd32() % N].key : rnd32() % (7 * N);
    for (uint32_t i = 0; i < N; i++)
        table[i].value = price(table[i].key);
    radix_sort(q, tmp, QUERIES);
    printf("%016llx\n", (unsigned long long)merge_lookups(table, q, QUERIES));
    return 0;
}
