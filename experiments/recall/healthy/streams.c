/* SPDX-License-Identifier: MIT OR Apache-2.0
 *
 * Healthy: few arrays added up in lock-step, fewer than any first level has ways, at any addresses.
 * SIZE: millions of elements. SHAPE: number of arrays, up to 6. */
#include "../planted.h"

enum { ELEMENTS = 1 << 17, MOST_ARRAYS = 6 };

static uint64_t *array[MOST_ARRAYS];

HOT uint64_t sum_streams(uint64_t arrays) {
    uint64_t sum = 0;
    for (uint64_t e = 0; e < ELEMENTS; e++)
        for (uint64_t a = 0; a < arrays; a++)
            sum += array[a][e];
    return sum;
}

int main(int argc, char **argv) {
    uint64_t reads = argument(argc, argv, 1, 1 << 20) * 1000000, arrays = argument(argc, argv, 2, MOST_ARRAYS), sum = 0;
    for (uint64_t a = 0; a < arrays; a++) {
        array[a] = malloc(ELEMENTS * sizeof **array);
        if (!array[a])
            planted_fail("not enough memory");
        for (uint64_t e = 0; e < ELEMENTS; e++)
            array[a][e] = mix(a + e);
    }
    uint64_t begun = now_ns();
    for (uint64_t round = 0; round < reads / (arrays * ELEMENTS); round++)
        sum = mix(sum + sum_streams(arrays));
    return report(sum, begun);
}
