/* SPDX-License-Identifier: MIT OR Apache-2.0
 *
 * Healthy: matrices of 192 by 192 are multiplied in blocks that fit the first level, with rows of an odd number of
 * lines. SIZE: number of products. */
#include "../planted.h"

enum { SIDE = 192, STRIDE = SIDE + 8, BLOCK = 24 };

static double a[SIDE * STRIDE], b[SIDE * STRIDE], c[SIDE * STRIDE];

HOT void multiply_block(int row, int column, int middle) {
    for (int i = row; i < row + BLOCK; i++)
        for (int k = middle; k < middle + BLOCK; k++)
            for (int j = column; j < column + BLOCK; j++)
                c[i * STRIDE + j] += a[i * STRIDE + k] * b[k * STRIDE + j];
}

int main(int argc, char **argv) {
    uint64_t times = argument(argc, argv, 1, 1 << 20);
    for (int i = 0; i < SIDE * STRIDE; i++)
        a[i] = (double)(mix((uint64_t)i) % 10), b[i] = (double)(mix((uint64_t)i + 7) % 10);
    uint64_t begun = now_ns();
    for (uint64_t n = 0; n < times; n++)
        for (int row = 0; row < SIDE; row += BLOCK)
            for (int column = 0; column < SIDE; column += BLOCK)
                for (int middle = 0; middle < SIDE; middle += BLOCK)
                    multiply_block(row, column, middle);
    return report((uint64_t)c[5 * STRIDE + 9], begun);
}
