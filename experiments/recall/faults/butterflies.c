/* SPDX-License-Identifier: MIT OR Apache-2.0
 *
 * The first pass of a transform with a large radix: a butterfly takes points that lie a power of two apart in one heap
 * block, combines them and writes them back. The points of a butterfly lie in one set of the first level, and the next
 * seven butterflies want the same lines. The twin leaves a line free between the parts.
 *
 * SIZE: thousands of points. SHAPE: the radix, a power of two.
 *
 *: half = "second"
 *: kind = "crowd"
 *: names = ["first_pass", "new_signal"]
 *: reach = "inside"
 *: traced = 900
 *: measured = 60000
 *: [[case]]
 *: shape = [16]
 *: pieces = 16
 *: [[case]]
 *: shape = [32]
 *: pieces = 32
 */
#include "../planted.h"

enum { MOST_RADIX = 32, PART = 1024, STRIDE = PART + TWINNED * LINE / 8 };

HOT uint64_t *new_signal(uint64_t radix) {
    uint64_t *signal = malloc(radix * STRIDE * sizeof *signal);
    if (!signal)
        planted_fail("not enough memory for that size");
    for (uint64_t p = 0; p < radix; p++)
        for (uint64_t k = 0; k < PART; k++)
            signal[p * STRIDE + k] = mix(p * PART + k);
    return signal;
}

/* Sums with the signs of a Walsh-Hadamard transform, first over pairs of neighbours, then over the two halves. */
HOT void first_pass(uint64_t *signal, uint64_t radix) {
    for (uint64_t k = 0; k < PART; k++) {
        uint64_t low = 0, high = 0;
        for (uint64_t p = 0; p < radix; p += 2) {
            low += signal[p * STRIDE + k];
            high ^= signal[(p + 1) * STRIDE + k];
        }
        for (uint64_t p = 0; p < radix; p += 2) {
            signal[p * STRIDE + k] += high;
            signal[(p + 1) * STRIDE + k] -= low;
        }
    }
}

int main(int argc, char **argv) {
    uint64_t points = argument(argc, argv, 1, 1 << 30) * 1000, radix = argument(argc, argv, 2, MOST_RADIX), digest = 0;
    uint64_t *signal = new_signal(radix);
    uint64_t begun = now_ns();
    for (uint64_t pass = 0; pass < points / (radix * PART); pass++)
        first_pass(signal, radix);
    for (uint64_t p = 0; p < radix; p++)
        digest = mix(digest + signal[p * STRIDE + p]);
    return report(digest, begun);
}
