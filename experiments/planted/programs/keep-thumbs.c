/* Thumbnail maker: every picture is decoded to full size, sharpened row by row
 * and averaged down. */
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define W 4000
#define H 3000
#define STEP 20
#define PICTURES 7

struct image { int w, h; uint8_t *px; };

static uint32_t noise(uint32_t *s) {
    *s ^= *s << 13; *s ^= *s >> 17; *s ^= *s << 5;
    return *s;
}

static int basis[8][8];

static void make_basis(void) {
    for (int x = 0; x < 8; x++)
        for (int u = 0; u < 8; u++)
            basis[x][u] = (int)lround(512.0 * cos((2 * x + 1) * u * M_PI / 16.0) * (u ? 1.0 : M_SQRT1_2));
}

/* One 8 x 8 block from its coefficients, rows and then columns. */
static void idct(const int16_t *coef, uint8_t *out, int stride) {
    int tmp[64];
    for (int v = 0; v < 8; v++)
        for (int x = 0; x < 8; x++) {
            int s = 0;
            for (int u = 0; u < 8; u++) s += coef[v * 8 + u] * basis[x][u];
            tmp[v * 8 + x] = s >> 8;
        }
    for (int y = 0; y < 8; y++)
        for (int x = 0; x < 8; x++) {
            int s = 0;
            for (int v = 0; v < 8; v++) s += tmp[v * 8 + x] * basis[y][v];
            s = (s >> 12) + 128;
            out[(size_t)y * stride + x * 3] = (uint8_t)(s < 0 ? 0 : s > 255 ? 255 : s);
        }
}

/* A stand-in for a decoder: sparse coefficients from a generator. */
static struct image *decode(uint32_t seed) {
    struct image *im = malloc(sizeof *im);
    im->w = W; im->h = H;
    im->px = malloc((size_t)W * H * 3);
    if (!im->px) abort();
    uint32_t s = seed * 2654435761u + 1;
    for (int y = 0; y < H; y += 8)
        for (int x = 0; x < W; x += 8)
            for (int c = 0; c < 3; c++) {
                int16_t coef[64] = {0};
                coef[0] = (int16_t)((x * (c + 1) / 8 + y / 4) % 300 - 150);
                for (int i = 0; i < 6; i++) {
                    uint32_t v = noise(&s);
                    coef[v >> 26] += (int16_t)((v & 63) - 32);
                }
                idct(coef, im->px + ((size_t)y * W + x) * 3 + c, W * 3);
            }
    return im;
}

static void release(struct image *im) { free(im->px); free(im); }

static inline int clamp(int v) { return v < 0 ? 0 : v > 255 ? 255 : v; }

static void sharpen_row(const struct image *im, int y, uint8_t *out) {
    const uint8_t *a = im->px + (size_t)(y - 1) * W * 3;
    const uint8_t *b = a + W * 3, *c = b + W * 3;
    for (int i = 3; i < W * 3 - 3; i++) {
        int around = a[i - 3] + 2 * a[i] + a[i + 3] + 2 * b[i - 3] + 2 * b[i + 3] + c[i - 3] + 2 * c[i] + c[i + 3];
        int v = b[i] + ((12 * b[i] - around) * 3 / 32);
        out[i] = (uint8_t)clamp(v);
    }
}

static uint64_t thumbnail(const struct image *im) {
    static uint8_t row[W * 3];
    static uint32_t acc[(W / STEP) * 3];
    uint64_t h = 1469598103934665603ull;
    memset(acc, 0, sizeof acc);
    for (int y = 1; y < H - 1; y++) {
        sharpen_row(im, y, row);
        for (int x = 0; x < W; x++) {
            uint32_t *cell = acc + x / STEP * 3;
            cell[0] += row[x * 3];
            cell[1] += row[x * 3 + 1];
            cell[2] += row[x * 3 + 2];
        }
        if (y % STEP == 0) {
            for (int i = 0; i < (W / STEP) * 3; i++) h = (h ^ (acc[i] / (STEP * STEP))) * 1099511628211ull;
            memset(acc, 0, sizeof acc);
        }
    }
    return h;
}

int main(void) {
    make_basis();
    uint64_t sum = 0;
    for (uint32_t i = 0; i < PICTURES; i++) {
        struct image *im = decode(i);
        sum = sum * 31 + thumbnail(im);
        release(im);
    }
    printf("%llu\n", (unsigned long long)sum);
    return 0;
}
