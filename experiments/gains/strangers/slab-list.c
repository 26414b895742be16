/* SPDX-License-Identifier: MIT OR Apache-2.0
 *
 * Walk of a linked list, its 256 nodes from a slab of 512-byte objects,
 * link and value in the first line (eight sets only); the twin's objects are 576 bytes. */
#include <stdio.h>
#include <stdlib.h>
#include <stdint.h>
#include <string.h>
#define NODES 256
#ifdef TWIN
#define OBJ (512 + 64)
#else
#define OBJ 512
#endif
struct node { struct node *next; uint64_t val; };

static __attribute__((noinline)) uint64_t walk(const struct node *n, uint64_t acc)
{
    for (; n; n = n->next)
        acc += n->val;
    return acc;
}

int main(int argc, char **argv)
{
    long rounds = argc > 1 ? atol(argv[1]) : 340000;
    size_t bytes = ((size_t)NODES * OBJ + 4095) & ~(size_t)4095;
    char *slab = aligned_alloc(4096, bytes);
    if (!slab) return 1;
    memset(slab, 0, bytes);
    int order[NODES];
    uint32_t r = 2024;
    for (int i = 0; i < NODES; i++) order[i] = i;
    for (int i = NODES - 1; i > 0; i--) {
        r = r * 1664525u + 1013904223u;
        int j = (int)((r >> 12) % (uint32_t)(i + 1)), x = order[i];
        order[i] = order[j]; order[j] = x;
    }
    struct node *first = NULL;
    for (int i = 0; i < NODES; i++) {
        struct node *n = (struct node *)(slab + (size_t)order[i] * OBJ);
        n->val = (uint64_t)i * 2654435761u;
        n->next = first;
        first = n;
    }
    uint64_t acc = 0;
    for (long t = 0; t < rounds; t++) {
        acc = walk(first, acc ^ (acc >> 11));
        first->val = acc & 0xffff;
    }
    printf("%016llx\n", (unsigned long long)acc);
    free(slab);
    return 0;
}
