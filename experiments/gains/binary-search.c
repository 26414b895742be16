/* SPDX-License-Identifier: MIT OR Apache-2.0
 *
 * Binary search over a sorted array of 2^18 keys. The first halvings probe keys that are a power of two of pages apart, so
 * the probes that every search makes lie in one set of each level. The twin puts a line of other data behind each
 * 32 KiB of keys.
 *
 * SIZE: thousands of searches. */
#include "../recall/planted.h"

enum { KEYS = 1 << 18, RUN = 32768 / 8, GAP = TWINNED * LINE / 8 };

static uint64_t at(uint64_t key) {
    return key + key / RUN * GAP;
}

HOT uint64_t search(const uint64_t *keys, uint64_t wanted) {
    uint64_t low = 0;
    for (uint64_t half = KEYS / 2; half; half /= 2)
        low += keys[at(low + half)] <= wanted ? half : 0;
    return low;
}

int main(int argc, char **argv) {
    uint64_t searches = argument(argc, argv, 1, 1 << 30) * 1000, digest = 1;
    uint64_t *keys = memory(PAGE, (at(KEYS) + 1) * sizeof *keys);
    for (uint64_t i = 0; i < KEYS; i++)
        keys[at(i)] = i * 3;
    uint64_t begun = now_ns();
    for (uint64_t i = 0; i < searches; i++)
        digest = mix(digest + search(keys, digest % (3 * KEYS)));
    return report(digest, begun);
}
