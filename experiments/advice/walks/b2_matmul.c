/* C (64 x 1150) = A (64 x 1100) times B (1100 x 1150), doubles: inner product order. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

enum { ROWS = 64, DEPTH = 1100, COLS = 1150 };

__attribute__((noinline)) static void multiply_ijk(const double *a, const double *b, double *c)
{
    for (int i = 0; i < ROWS; i++)
        for (int j = 0; j < COLS; j++) {
            double s = 0;
            for (int k = 0; k < DEPTH; k++)
                s += a[i * DEPTH + k] * b[k * COLS + j];
            c[i * COLS + j] = s;
        }
}

static void fill(double *p, size_t n, uint64_t s)
{
    for (size_t i = 0; i < n; i++) {
        for (int r = 0; r < 30; r++)
            s = s * 6364136223846793005ull + 1442695040888963407ull;
        p[i] = (double)(int)(s >> 54) - 512;
    }
}

int main(void)
{
    double *a = malloc(sizeof(double) * ROWS * DEPTH);
    double *b = malloc(sizeof(double) * DEPTH * COLS);
    double *c = calloc(ROWS * COLS, sizeof(double));
    fill(a, ROWS * DEPTH, 1);
    fill(b, DEPTH * COLS, 2);
    multiply_ijk(a, b, c);
    double sum = 0;
    for (int i = 0; i < ROWS * COLS; i++)
        sum += c[i] * (i % 7);
    printf("%.0f\n", sum);
    return 0;
}
