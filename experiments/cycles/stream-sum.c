/* One pass after another over 32 MiB. */
#include <stdio.h>
#include <stdlib.h>
enum { WORDS = 4 << 20, ROUNDS = 6 };
int main(void)
{
    unsigned long *table = calloc(WORDS, sizeof *table), sum = 0;
    for (int i = 0; i < WORDS; i++)
        table[i] = i;
    for (int r = 0; r < ROUNDS; r++)
        for (int i = 0; i < WORDS; i++)
            sum += table[i] ^ r;
    printf("%lu\n", sum);
}
