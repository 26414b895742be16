/* SPDX-License-Identifier: MIT OR Apache-2.0
 *
 * A matrix is turned: it is read by rows and written by columns, with elements 4 KiB apart, so that the 48 lines
 * written in turn lie in one set of the first level. The twin's columns are a line longer.
 *
 * SIZE: number of times. */
#include "../recall/planted.h"

enum { ROWS = 256, COLUMNS = 48, PITCH = PAGE / 8 + TWINNED * LINE / 8 };

HOT void turn(const uint64_t *from, uint64_t *to, uint64_t add) {
    for (uint64_t row = 0; row < ROWS; row++)
        for (uint64_t column = 0; column < COLUMNS; column++)
            to[column * PITCH + row] = from[row * COLUMNS + column] + add;
}

int main(int argc, char **argv) {
    uint64_t times = argument(argc, argv, 1, 1 << 20), digest = 0;
    uint64_t *from = memory(PAGE, ROWS * COLUMNS * sizeof *from), *to = memory(PAGE, COLUMNS * PITCH * sizeof *to);
    for (uint64_t i = 0; i < ROWS * COLUMNS; i++)
        from[i] = mix(i);
    uint64_t begun = now_ns();
    for (uint64_t i = 0; i < times; i++) {
        turn(from, to, digest);
        digest = mix(digest + to[i % COLUMNS * PITCH + i % ROWS]);
    }
    return report(digest, begun);
}
