/* SPDX-License-Identifier: MIT OR Apache-2.0
 *
 * A matrix is added up column by column in `column_sum`; its rows are a power of two long.
 *
 *: names = ["column_sum"]
 *: size = 6
 */
#include "../planted.h"

enum { ROWS = 512, COLUMNS = 1024 };

static alignas(PAGE) uint64_t matrix[ROWS][COLUMNS];

HOT uint64_t column_sum(uint64_t column) {
    uint64_t sum = 0;
    for (uint64_t row = 0; row < ROWS; row++)
        sum += matrix[row][column];
    return sum;
}

int main(int argc, char **argv) {
    uint64_t times = argument(argc, argv, 1, 1 << 20), sum = 0;
    for (uint64_t row = 0; row < ROWS; row++)
        for (uint64_t column = 0; column < COLUMNS; column++)
            matrix[row][column] = mix(row * COLUMNS + column);
    uint64_t begun = now_ns();
    for (uint64_t walk = 0; walk < times * COLUMNS; walk++)
        sum = mix(sum + column_sum(walk % COLUMNS));
    return report(sum, begun);
}
