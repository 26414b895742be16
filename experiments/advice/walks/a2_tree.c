/* Price look-ups in a balanced binary tree of 32-byte nodes. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#define N 400000u
#define QUERIES 500000u

struct tnode {
    struct tnode *left, *right;
    uint32_t key, value;
    uint64_t pad;
};

static uint64_t x = 0x2545f4914f6cdd1dull;
static uint32_t rnd32(void)
{
    x ^= x << 13;
    x ^= x >> 7;
    x ^= x << 17;
    return (uint32_t)(x >> 24);
}

static uint32_t *keys, *slot, used;
static struct tnode *pool;

static uint32_t price(uint32_t key)
{
    uint32_t v = key;
    for (int r = 0; r < 120; r++)
        v = (v ^ (v >> 13)) * 0x5bd1e995u + (uint32_t)r;
    return v;
}

static struct tnode *build(uint32_t lo, uint32_t hi)
{
    if (lo >= hi)
        return NULL;
    uint32_t mid = lo + (hi - lo) / 2;
    struct tnode *n = &pool[slot[used++]];
    n->key = keys[mid];
    n->value = price(keys[mid]);
    n->left = build(lo, mid);
    n->right = build(mid + 1, hi);
    return n;
}

__attribute__((noinline)) static uint64_t tree_lookups(const struct tnode *root, const uint32_t *q, uint32_t n)
{
    uint64_t sum = 0;
    for (uint32_t i = 0; i < n; i++) {
        const struct tnode *t = root;
        while (t) {
            if (t->key == q[i]) {
                sum += t->value;
                break;
            }
            t = q[i] < t->key ? t->left : t->right;
        }
    }
    return sum;
}

int main(void)
{
    keys = malloc(N * sizeof *keys);
    slot = malloc(N * sizeof *slot);
    pool = malloc(N * sizeof *pool);
    uint32_t *q = malloc(QUERIES * sizeof *q);
    for (uint32_t i = 0; i < N; i++) {
        keys[i] = i * 7 + rnd32() % 7;
        slot[i] = i;
    }
    for (uint32_t i = N - 1; i > 0; i--) {
        uint32_t j = rnd32() % (i + 1), t = slot[i];
        slot[i] = slot[j];
        slot[j] = t;
    }
    for (uint32_t i = 0; i < QUERIES; i++)
        q[i] = rnd32() & 7 ? keys[rnd32() % N] : rnd32() % (7 * N);
    struct tnode *root = build(0, N);
    printf("%016llx\n", (unsigned long long)tree_lookups(root, q, QUERIES));
    return 0;
}
