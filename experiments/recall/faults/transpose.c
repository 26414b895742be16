/* SPDX-License-Identifier: MIT OR Apache-2.0
 *
 * A matrix of 512 by 512 is transposed: one side is written down its columns, 512 lines 4 KiB apart, which all lie in
 * one set of the first level; the two matrices take turns as that side, which makes 1,024 rows in all. The twin's rows
 * are a line longer.
 *
 * SIZE: number of transpositions.
 *
 *: kind = "crowd"
 *: names = ["transpose"]
 *: reach = "inside"
 *: pieces = 1024
 *: traced = 6
 *: measured = 50
 */
#include "../planted.h"

enum { SIDE = 512, STRIDE = SIDE + TWINNED * LINE / 8 };

HOT void transpose(uint64_t *to, const uint64_t *from) {
    for (uint64_t row = 0; row < SIDE; row++)
        for (uint64_t column = 0; column < SIDE; column++)
            to[column * STRIDE + row] = from[row * STRIDE + column];
}

int main(int argc, char **argv) {
    uint64_t times = argument(argc, argv, 1, 1 << 20), digest = 0;
    uint64_t *a = memory(PAGE, SIDE * STRIDE * sizeof *a), *b = memory(PAGE, SIDE * STRIDE * sizeof *b);
    for (uint64_t row = 0; row < SIDE; row++)
        for (uint64_t column = 0; column < SIDE; column++)
            a[row * STRIDE + column] = mix(row * SIDE + column);
    uint64_t begun = now_ns();
    for (uint64_t i = 0; i < times; i++)
        i % 2 ? transpose(a, b) : transpose(b, a);
    for (uint64_t row = 0; row < SIDE; row++)
        digest = mix(digest + a[row * STRIDE + row] + b[row * STRIDE + 1]);
    return report(digest, begun);
}
