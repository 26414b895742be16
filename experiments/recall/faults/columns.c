/* SPDX-License-Identifier: MIT OR Apache-2.0
 *
 * A matrix with rows of 8 KiB, added up column by column. The lines of a column lie in one set of the first level; each
 * is wanted again by the next seven columns and is gone. The twin's rows are a line longer.
 *
 * SIZE: thousands of cells read. SHAPE: number of rows.
 *
 *: kind = "crowd"
 *: names = ["column_sum"]
 *: reach = "inside"
 *: traced = 2500
 *: measured = 30000
 *: [[case]]
 *: shape = [128]
 *: pieces = 128
 *: [[case]]
 *: shape = [512]
 *: pieces = 512
 */
#include "../planted.h"

enum { COLUMNS = 1024, STRIDE = COLUMNS + TWINNED * LINE / 8, MOST_ROWS = 1024 };

HOT uint64_t column_sum(const uint64_t *matrix, uint64_t rows, uint64_t column) {
    uint64_t sum = 0;
    for (uint64_t r = 0; r < rows; r++)
        sum += matrix[r * STRIDE + column];
    return sum;
}

int main(int argc, char **argv) {
    uint64_t reads = argument(argc, argv, 1, 1 << 30) * 1000, rows = argument(argc, argv, 2, MOST_ROWS), sum = 0;
    uint64_t *matrix = malloc(rows * STRIDE * sizeof *matrix);
    if (!matrix)
        planted_fail("not enough memory for that size");
    for (uint64_t r = 0; r < rows; r++)
        for (uint64_t c = 0; c < COLUMNS; c++)
            matrix[r * STRIDE + c] = mix(r * COLUMNS + c);
    uint64_t begun = now_ns();
    for (uint64_t walk = 0; walk < reads / rows; walk++)
        sum = mix(sum + column_sum(matrix, rows, walk % COLUMNS));
    return report(sum, begun);
}
