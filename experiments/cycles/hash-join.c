/* Keys in a row, buckets at random, a short list behind each: chains that begin anew. */
#include <stdio.h>
#include <stdlib.h>
enum { KEYS = 1 << 17, BUCKETS = 1 << 16, ROUNDS = 6 };
struct entry {
    struct entry *next;
    unsigned key, value;
    char pad[48];
};
static struct entry *buckets[BUCKETS];
static unsigned hash(unsigned key)
{
    return key * 2654435761u >> 16;
}
int main(void)
{
    struct entry *all = calloc(KEYS, sizeof *all);
    unsigned *keys = malloc(KEYS * sizeof *keys), x = 1, sum = 0;
    for (unsigned i = 0; i < KEYS; i++) {
        struct entry *e = &all[(i * 40503u) % KEYS];
        e->key = i, e->value = i * 3, e->next = buckets[hash(i)], buckets[hash(i)] = e;
        keys[i] = (x = x * 1664525u + 1013904223u) % KEYS;
    }
    for (int r = 0; r < ROUNDS; r++)
        for (int i = 0; i < KEYS; i++)
            for (struct entry *e = buckets[hash(keys[i])]; e; e = e->next)
                sum += e->key == keys[i] ? e->value : 0;
    printf("%u\n", sum);
}
