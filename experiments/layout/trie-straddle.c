/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Trie nodes of 72 bytes, walked at random: the skip count and the chosen link of a node lie on two lines
   for most nodes. Twin: the label apart, nodes padded and aligned to 64. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#define NNODE 16384
#define FANOUT 12
static uint64_t seed = 11;
static uint32_t rnd(void) { seed = seed * 6364136223846793005ull + 1442695040888963407ull; return seed >> 33; }
struct trie_node {
    uint32_t skip;
    uint32_t hits;
    uint32_t next[FANOUT];
#ifndef FIXED
    char label[16];
};
#define LABEL(i) nodes[i].label
#else
} __attribute__((aligned(64)));
static char (*labels)[16];
#define LABEL(i) labels[i]
#endif
static struct trie_node *nodes;
static unsigned char text[4096 + 64];
__attribute__((noinline)) static void trie_build(void)
{
#ifdef FIXED
    nodes = aligned_alloc(64, NNODE * sizeof *nodes);
    labels = malloc(NNODE * sizeof *labels);
#else
    nodes = malloc(NNODE * sizeof *nodes);
#endif
    for (int i = 0; i < NNODE; i++) {
        struct trie_node *t = &nodes[i];
        t->skip = 1 + rnd() % 15; t->hits = 0;
        for (int k = 0; k < FANOUT; k++) t->next[k] = rnd() % NNODE;
        memset(LABEL(i), 0, 16); memcpy(LABEL(i), "node", 4); LABEL(i)[5] = 'a' + i % 26;
    }
    for (size_t i = 0; i < sizeof text; i++) text[i] = rnd() % FANOUT;
}
__attribute__((noinline)) static uint32_t trie_walk(uint32_t at, int steps)
{
    uint32_t pos = at & 4095;
    for (int s = 0; s < steps; s++) {
        struct trie_node *t = &nodes[at];
        pos = (pos + t->skip) & 4095;
        t->hits++;
        at = t->next[text[pos]];
    }
    return at;
}
__attribute__((noinline)) static uint64_t trie_report(void)
{
    uint64_t d = 0;
    for (int i = 0; i < NNODE; i++) d = d * 31 + nodes[i].hits * (unsigned char)LABEL(i)[5];
    return d;
}
int main(int argc, char **argv)
{
    int rounds = argc > 1 ? atoi(argv[1]) : 140;
    trie_build();
    uint64_t sum = 0;
    for (int r = 0; r < rounds; r++) sum += trie_walk(rnd() % NNODE, 30000);
    printf("%llu %llx\n", (unsigned long long)sum, (unsigned long long)trie_report());
    return 0;
}
