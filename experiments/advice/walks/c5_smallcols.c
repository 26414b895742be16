/* Column walks over a 50 x 56 matrix of floats (11 KiB): strided, but it never leaves the first-level cache. */
#include <stdio.h>

#define R 50
#define C 56

static float m[R][C];
static float total[C];

__attribute__((noinline)) static void sum_small_columns(float f)
{
    for (int j = 0; j < C; j++) {
        float t = 0;
        for (int i = 0; i < R; i++)
            t += m[i][j] * f;
        total[j] += t;
    }
}

int main(void)
{
    for (int i = 0; i < R; i++)
        for (int j = 0; j < C; j++)
            m[i][j] = (float)((i * 31 + j * 17) % 101) / 128;
    for (int k = 0; k < 360000; k++)
        sum_small_columns((float)(k & 15) / 16);
    double sum = 0;
    for (int j = 0; j < C; j++)
        sum += total[j];
    printf("%.6e\n", sum);
    return 0;
}
