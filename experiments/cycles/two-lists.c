/* Four lists walked side by side: chains that overlap each other. */
#include <stdio.h>
#include <stdlib.h>
enum { LISTS = 4, NODES = 1 << 15, ROUNDS = 12 };
struct node {
    struct node *next;
    char pad[120];
};
int main(void)
{
    struct node *at[LISTS];
    for (int l = 0; l < LISTS; l++) {
        struct node *all = calloc(NODES, sizeof *all);
        for (unsigned i = 0; i < NODES; i++)
            all[i * 20021u % NODES].next = &all[(i + 1) * 20021u % NODES];
        at[l] = all;
    }
    struct node *a = at[0], *b = at[1], *c = at[2], *d = at[3];
    for (int i = 0; i < NODES * ROUNDS; i++)
        a = a->next, b = b->next, c = c->next, d = d->next;
    printf("%d\n", (a != 0) + (b != 0) + (c != 0) + (d != 0));
}
