/* Independent loads by an index array: misses that overlap. */
#include <stdio.h>
#include <stdlib.h>
enum { TABLE = 4 << 20, INDEXES = 1 << 18, ROUNDS = 8 };
int main(void)
{
    unsigned *table = malloc(TABLE * sizeof *table), *index = malloc(INDEXES * sizeof *index), x = 1, sum = 0;
    for (int i = 0; i < TABLE; i++)
        table[i] = i;
    for (int i = 0; i < INDEXES; i++)
        index[i] = (x = x * 1664525u + 1013904223u) % TABLE;
    for (int r = 0; r < ROUNDS; r++)
        for (int i = 0; i < INDEXES; i++)
            sum += table[index[i]];
    printf("%u\n", sum);
}
