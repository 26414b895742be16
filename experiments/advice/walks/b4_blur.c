/* Vertical box blur of a grey image (bytes), one column at a time. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#define H 3000
#define W 3700
#define R 4

__attribute__((noinline)) static void blur_down_columns(uint8_t *restrict out, const uint8_t *restrict in)
{
    for (int x = 0; x < W; x++) {
        unsigned acc = 0;
        for (int y = 0; y < 2 * R; y++)
            acc += in[(size_t)y * W + x];
        for (int y = R; y < H - R; y++) {
            acc += in[(size_t)(y + R) * W + x];
            out[(size_t)y * W + x] = (uint8_t)(acc / (2 * R + 1));
            acc -= in[(size_t)(y - R) * W + x];
        }
    }
}

int main(void)
{
    uint8_t *a = malloc((size_t)H * W), *b = calloc((size_t)H, W);
    uint64_t s = 99;
    for (size_t i = 0; i < (size_t)H * W; i++) {
        for (int r = 0; r < 2; r++) {
            s ^= s << 13;
            s ^= s >> 7;
            s ^= s << 17;
        }
        a[i] = (uint8_t)((s >> 32) & (s >> 40));
    }
    for (int k = 0; k < 2; k++) {
        blur_down_columns(b, a);
        uint8_t *t = a;
        a = b;
        b = t;
    }
    uint32_t sum = 0;
    for (size_t i = 0; i < (size_t)H * W; i++)
        sum = sum * 31 + a[i];
    printf("%08x\n", sum);
    return 0;
}
