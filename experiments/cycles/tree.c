/* Descents of a binary tree by random keys. */
#include <stdio.h>
#include <stdlib.h>
enum { NODES = 1 << 16, LOOKUPS = 1 << 18 };
struct node {
    struct node *child[2];
    unsigned key;
    char pad[44];
};
int main(void)
{
    struct node *all = calloc(NODES, sizeof *all), *root = NULL;
    unsigned x = 1, sum = 0;
    for (unsigned i = 0; i < NODES; i++) {
        struct node *n = &all[i], **at = &root;
        n->key = x = x * 1664525u + 1013904223u;
        while (*at)
            at = &(*at)->child[n->key > (*at)->key];
        *at = n;
    }
    for (int i = 0; i < LOOKUPS; i++) {
        x = x * 1664525u + 1013904223u;
        for (struct node *n = root; n; n = n->child[x > n->key])
            sum += n->key;
    }
    printf("%u\n", sum);
}
