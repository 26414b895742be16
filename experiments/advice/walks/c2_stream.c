/* Triad over three arrays of 16 MiB. */
#include <stdio.h>
#include <stdlib.h>

#define N (2u << 20)

__attribute__((noinline)) static void triad(double *restrict a, const double *restrict b, const double *restrict c, double f)
{
    for (size_t i = 0; i < N; i++)
        a[i] = b[i] + f * c[i];
}

int main(void)
{
    double *a = malloc(N * sizeof *a), *b = malloc(N * sizeof *b), *c = malloc(N * sizeof *c);
    for (size_t i = 0; i < N; i++) {
        a[i] = 0;
        b[i] = (double)(i % 1000);
        c[i] = (double)(i % 77);
    }
    for (int k = 0; k < 16; k++) {
        triad(a, b, c, 3);
        triad(b, c, a, 2);
    }
    double sum = 0;
    for (size_t i = 0; i < N; i++)
        sum += a[i];
    printf("%.6e\n", sum);
    return 0;
}
