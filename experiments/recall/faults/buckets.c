/* SPDX-License-Identifier: MIT OR Apache-2.0
 *
 * A hash table with 256 buckets, each a page of its own. Every look-up reads the head of its bucket, and all heads lie
 * in one set of the first level, in random order; the keys fall on 252 of the buckets. The twin puts the heads at
 * unlike offsets of their pages.
 *
 * SIZE: thousands of look-ups.
 *
 *: kind = "crowd"
 *: names = ["find_key"]
 *: reach = "inside"
 *: pieces = 252
 *: traced = 500
 *: measured = 20000
 */
#include "../planted.h"

enum { BUCKETS = 256, KEYS = 7 };

struct bucket {
    uint64_t used, key[KEYS];
};

static struct bucket *bucket_of(char *table, uint64_t key) {
    uint64_t n = mix(key) % BUCKETS;
    return (struct bucket *)(table + n * PAGE + (TWINNED ? n % L1_SETS * LINE : 0));
}

HOT int find_key(char *table, uint64_t key) {
    const struct bucket *b = bucket_of(table, key);
    int found = 0;
    for (uint64_t i = 0; i < KEYS; i++)
        found |= b->key[i] == key;
    return found;
}

int main(int argc, char **argv) {
    uint64_t lookups = argument(argc, argv, 1, 1 << 30) * 1000, found = 0;
    char *table = memory(PAGE, (BUCKETS + 1) * PAGE);
    for (uint64_t key = 0; key < BUCKETS * 3; key++) {
        struct bucket *b = bucket_of(table, key);
        if (b->used < KEYS)
            b->key[b->used++] = key;
    }
    uint64_t begun = now_ns(), state = 1;
    for (uint64_t i = 0; i < lookups; i++) {
        state = state * 6364136223846793005u + 1442695040888963407u;
        found += (uint64_t)find_key(table, (state >> 33) % (BUCKETS * 4));
    }
    return report(found, begun);
}
