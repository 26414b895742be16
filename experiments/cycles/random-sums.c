/* Loads at computed random places of 1 MiB: second-level hits that overlap. */
#include <stdio.h>
#include <stdlib.h>
enum { WORDS = 1 << 18, LOADS = 1 << 23 };
int main(void)
{
    unsigned *table = calloc(WORDS, sizeof *table), x = 1, sum = 0;
    for (int i = 0; i < WORDS; i++)
        table[i] = i;
    for (int i = 0; i < LOADS; i++) {
        x = x * 1664525u + 1013904223u;
        sum += table[x >> 14];
    }
    printf("%u\n", sum);
}
