/* SPDX-License-Identifier: MIT OR Apache-2.0
 *
 * A product of matrices of doubles in tiles of 32 by 32, with rows 4 KiB apart: the 32 rows of a tile lie in four sets
 * of the first level, so that a tile that fits four times over does not fit. The twin's rows are a line longer.
 *
 * SIZE: number of tile products. */
#include "../recall/planted.h"

enum { SIDE = 512, PITCH = SIDE + TWINNED * LINE / 8, TILE = 32, ACROSS = SIDE / TILE };

HOT void multiply_tile(double *c, const double *a, const double *b) {
    for (int i = 0; i < TILE; i++)
        for (int k = 0; k < TILE; k++)
            for (int j = 0; j < TILE; j++)
                c[i * PITCH + j] += a[i * PITCH + k] * b[k * PITCH + j];
}

int main(int argc, char **argv) {
    uint64_t products = argument(argc, argv, 1, 1 << 20), digest = 0;
    size_t bytes = (size_t)SIDE * PITCH * sizeof(double);
    double *a = memory(PAGE, bytes), *b = memory(PAGE, bytes), *c = memory(PAGE, bytes);
    for (uint64_t i = 0; i < SIDE * (uint64_t)SIDE; i++) {
        a[i / SIDE * PITCH + i % SIDE] = (double)(mix(i) % 10);
        b[i / SIDE * PITCH + i % SIDE] = (double)(mix(i + 1) % 10);
    }
    uint64_t begun = now_ns();
    for (uint64_t n = 0; n < products; n++) {
        uint64_t i = n / ACROSS / ACROSS % ACROSS, j = n / ACROSS % ACROSS, k = n % ACROSS;
        multiply_tile(c + (i * PITCH + j) * TILE, a + (i * PITCH + k) * TILE, b + (k * PITCH + j) * TILE);
    }
    for (uint64_t i = 0; i < SIDE; i++)
        digest = mix(digest + (uint64_t)c[i * PITCH + i]);
    return report(digest, begun);
}
