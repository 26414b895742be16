/* SPDX-License-Identifier: MIT OR Apache-2.0
 *
 * A checksum by sixteen tables of 4 KiB, one for each byte of a word pair. The bytes are letters, so each table is used at
 * its first four lines only, and sixty-four lines compete for four sets of the first level. Sixteen look-ups do not depend
 * on one another; the next sixteen depend on their sum. The twin's tables are four lines longer.
 *
 * SIZE: thousands of word pairs. */
#include "../recall/planted.h"

enum { TABLES = 16, ENTRIES = PAGE / 8, PITCH = ENTRIES + TWINNED * 4 * LINE / 8, LETTERS = 32 };

static alignas(PAGE) uint64_t table[TABLES * PITCH];

HOT uint64_t checksum(uint64_t state, uint64_t a, uint64_t b) {
    uint64_t sum = 0;
    a ^= state;
    b ^= state >> 7;
    for (int t = 0; t < TABLES / 2; t++) {
        sum ^= table[t * PITCH + (a >> 8 * t) % LETTERS];
        sum ^= table[(t + TABLES / 2) * PITCH + (b >> 8 * t) % LETTERS];
    }
    return sum;
}

int main(int argc, char **argv) {
    uint64_t pairs = argument(argc, argv, 1, 1 << 30) * 1000, state = 0;
    for (uint64_t i = 0; i < TABLES * LETTERS; i++)
        table[i / LETTERS * PITCH + i % LETTERS] = mix(i + 1);
    uint64_t begun = now_ns();
    for (uint64_t i = 0; i < pairs; i++)
        state = checksum(state, i * 0x9e3779b97f4a7c15u, i * 0xbf58476d1ce4e5b9u);
    return report(state, begun);
}
