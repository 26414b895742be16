/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Binary search tree: the payload sits between the key and the children. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#define NNODE 24576
static uint64_t seed = 3;
static uint32_t rnd(void) { seed = seed * 6364136223846793005ull + 1442695040888963407ull; return seed >> 33; }
struct tree_node {
    uint32_t key;
#if defined PROPOSED
    struct tree_node *left, *right;
};                                   /* 24 bytes */
struct cold {
    uint32_t version;
    char document[104];
    uint64_t stamp;
    uint64_t owner[7];
};
#elif defined FIXED
    uint32_t version;
    struct tree_node *left, *right;
    uint64_t stamp;
    char document[104];
    uint64_t owner[7];
};                                   /* 192 bytes */
#else
    uint32_t version;
    char document[104];
    uint64_t stamp;
    struct tree_node *left, *right;
    uint64_t owner[7];
};
#endif
static struct tree_node *pool; static int used;
#ifdef PROPOSED
static struct cold *colds;
#define COLD(node) colds[(node) - pool]
#else
#define COLD(node) (*(node))
#endif
__attribute__((noinline)) static struct tree_node *insert(struct tree_node *root, uint32_t key)
{
    struct tree_node **at = &root;
    while (*at) {
        if (key == (*at)->key) return root;
        at = key < (*at)->key ? &(*at)->left : &(*at)->right;
    }
    struct tree_node *n = *at = &pool[used++];
    memset(n, 0, sizeof *n); memset(&COLD(n), 0, sizeof COLD(n));
    n->key = key; COLD(n).version = 1; COLD(n).stamp = key ^ 0x55; memcpy(COLD(n).document, "doc", 4);
    return root;
}
__attribute__((noinline)) static const struct tree_node *lookup(const struct tree_node *n, uint32_t key, int *depth)
{
    while (n && n->key != key) { n = key < n->key ? n->left : n->right; ++*depth; }
    return n;
}
int main(int argc, char **argv)
{
    int rounds = argc > 1 ? atoi(argv[1]) : 14;
    pool = aligned_alloc(64, NNODE * sizeof *pool);
#ifdef PROPOSED
    colds = aligned_alloc(64, NNODE * sizeof *colds);
#endif
    struct tree_node *root = NULL;
    while (used < NNODE) root = insert(root, rnd() % 1000000);
    uint64_t steps = 0, found = 0, sum = 0;
    for (int r = 0; r < rounds; r++)
        for (int q = 0; q < 25000; q++) {
            int d = 0;
            const struct tree_node *n = lookup(root, rnd() % 1000000, &d);
            steps += d;
            if (n) { found++; sum += COLD(n).stamp; }
        }
    printf("%llu %llu %llu\n", (unsigned long long)steps, (unsigned long long)found, (unsigned long long)sum);
    return 0;
}
