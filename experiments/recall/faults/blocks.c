/* SPDX-License-Identifier: MIT OR Apache-2.0
 *
 * Malloc blocks above the mmap threshold are added up in lock-step. They all begin at the same offset of a page, so the
 * elements of one step lie in one set of the first level. The twin begins each block a line later than the one before.
 *
 * SIZE: millions of elements read. SHAPE: number of blocks. "ways+1": one more than the ways of the L1 data cache.
 *
 *: kind = "crowd"
 *: names = ["add_up"]
 *: reach = "outside"
 *: traced = 3
 *: measured = 100
 *: [[case]]
 *: shape = ["ways+1"]
 *: pieces = "ways+1"
 *: [[case]]
 *: shape = [14]
 *: pieces = 14
 *: [[case]]
 *: shape = [22]
 *: pieces = 22
 *: [[case]]
 *: shape = [26]
 *: pieces = 26
 *: [[case]]
 *: shape = [32]
 *: pieces = 32
 *: [[case]]
 *: shape = [40]
 *: pieces = 40
 *: [[case]]
 *: shape = [160]
 *: pieces = 160
 *: [[case]]
 *: shape = [512]
 *: pieces = 512
 *: measured = 30
 */
#include "../planted.h"

enum { MOST_BLOCKS = 512, BLOCK_BYTES = 160 << 10, ELEMENTS = 1024 };

static uint64_t *block[MOST_BLOCKS];

HOT uint64_t add_up(uint64_t blocks) {
    uint64_t sum = 0;
    for (uint64_t e = 0; e < ELEMENTS; e++)
        for (uint64_t b = 0; b < blocks; b++)
            sum += block[b][e];
    return sum;
}

int main(int argc, char **argv) {
    uint64_t reads = argument(argc, argv, 1, 1 << 20) * 1000000;
    uint64_t blocks = argument(argc, argv, 2, MOST_BLOCKS), sum = 0;
    for (uint64_t b = 0; b < blocks; b++) {
        char *begin = malloc(BLOCK_BYTES);
        if (!begin)
            planted_fail("not enough memory for that size");
        block[b] = (uint64_t *)(begin + (TWINNED ? b % L1_SETS * LINE : 0));
        for (uint64_t e = 0; e < ELEMENTS; e++)
            block[b][e] = mix(b * ELEMENTS + e);
    }
    uint64_t begun = now_ns();
    for (uint64_t round = 0; round < reads / (blocks * ELEMENTS); round++)
        sum = mix(sum + add_up(blocks));
    return report(sum, begun);
}
