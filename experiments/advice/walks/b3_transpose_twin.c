/* Transposition of a 4096 x 2048 image of floats, in tiles. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#define H 4096
#define W 2048

static void transpose_tiled(float *restrict dst, const float *restrict src)
{
    for (int by = 0; by < H; by += 64)
        for (int bx = 0; bx < W; bx += 8)
            for (int y = by; y < by + 64; y++)
                for (int x = bx; x < bx + 8; x++)
                    dst[(size_t)x * H + y] = src[(size_t)y * W + x];
}

int main(void)
{
    float *a = malloc(sizeof(float) * H * W), *b = malloc(sizeof(float) * H * W);
    uint32_t s = 5;
    for (size_t i = 0; i < (size_t)H * W; i++) {
        for (int r = 0; r < 2; r++)
            s = (s ^ (s >> 13)) * 0x5bd1e995u + 77;
        a[i] = (float)(s >> 16);
    }
    double sum = 0;
    for (int k = 0; k < 4; k++) {
        transpose_tiled(b, a);
        sum += b[(size_t)k * H * 11 + 17 * (k + 1)];
        a[k * 3 + 1] += 1;
    }
    for (size_t i = 0; i < (size_t)H * W; i++)
        sum += b[i] * (float)(i & 3);
    printf("%.0f\n", sum);
    return 0;
}
