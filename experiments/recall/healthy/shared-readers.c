/* SPDX-License-Identifier: MIT OR Apache-2.0
 *
 * Healthy: two threads look up words in one table that nobody writes any more. SIZE: thousands of look-ups a thread. */
#include "../planted.h"

enum { ENTRIES = 1 << 15, READERS = 2 };

static uint64_t dictionary[ENTRIES];

static struct {
    alignas(2 * LINE) uint64_t sum;
} result[READERS];

HOT void read_table(unsigned self, uint64_t lookups) {
    uint64_t sum = 0;
    for (uint64_t i = 0; i < lookups; i++)
        sum += dictionary[mix(i + self) % ENTRIES];
    result[self].sum = sum;
}

int main(int argc, char **argv) {
    uint64_t lookups = argument(argc, argv, 1, 1 << 20) * 1000;
    for (uint64_t i = 0; i < ENTRIES; i++)
        dictionary[i] = mix(i);
    uint64_t begun = now_ns();
    on_threads(READERS, read_table, lookups);
    return report(result[0].sum + result[1].sum, begun);
}
