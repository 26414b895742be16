/* Column totals of a 2048 x 2048 matrix of doubles, row after row. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#define N 2048
#define PASSES 16

static double m[N][N];
static double total[N];

__attribute__((noinline)) static void sum_rowwise(double scale)
{
    for (int i = 0; i < N; i++)
        for (int j = 0; j < N; j++)
            total[j] += m[i][j] * scale;
}

int main(void)
{
    uint32_t s = 1;
    for (int i = 0; i < N; i++)
        for (int j = 0; j < N; j++) {
            for (int r = 0; r < 4; r++)
                s = (s ^ (s >> 15)) * 0x2c1b3c6du + 0x9e3779b9u;
            m[i][j] = s >> 20;
        }
    for (int k = 0; k < PASSES; k++)
        sum_rowwise(k + 1);
    double sum = 0;
    for (int j = 0; j < N; j++)
        sum += total[j] * (j % 5 + 1);
    printf("%.0f\n", sum);
    return 0;
}
