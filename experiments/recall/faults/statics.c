/* SPDX-License-Identifier: MIT OR Apache-2.0
 *
 * Sixteen static arrays of 32 KiB, read cell by cell in lock-step. The linker puts one after the other, so cells of one
 * index lie in one set of the first level. The arrays of the twin are a line longer.
 *
 * SIZE: millions of cells read.
 *
 *: kind = "crowd"
 *: names = ["relax", "density", "energy", "pressure", "velocity"]
 *: reach = "inside"
 *: pieces = 16
 *: traced = 3
 *: measured = 200
 */
#include "../planted.h"

#define FIELDS(X) \
    X(density) X(energy) X(pressure) X(velocity) X(flux) X(heat) X(charge) X(spin) \
    X(mass) X(drag) X(lift) X(curl) X(swirl) X(shear) X(strain) X(stress)

enum { CELLS = 4096, FIELD_CELLS = CELLS + TWINNED * LINE / 8, FIELD_COUNT = 16 };

#define DECLARE(name) static uint64_t name[FIELD_CELLS];
FIELDS(DECLARE)

HOT void fill(uint64_t *field, uint64_t seed) {
    for (uint64_t c = 0; c < CELLS; c++)
        field[c] = mix(seed + c);
}

#define ADD(name) sum += name[c];
HOT uint64_t relax(void) {
    uint64_t sum = 0;
    for (uint64_t c = 0; c < CELLS; c++) {
        FIELDS(ADD)
    }
    return sum;
}

#define FILL(name) fill(name, seed += CELLS);
int main(int argc, char **argv) {
    uint64_t reads = argument(argc, argv, 1, 1 << 20) * 1000000, sum = 0, seed = 0;
    FIELDS(FILL)
    uint64_t begun = now_ns();
    for (uint64_t round = 0; round < reads / (FIELD_COUNT * CELLS); round++)
        sum = mix(sum + relax());
    return report(sum, begun);
}
