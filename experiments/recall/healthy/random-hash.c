/* SPDX-License-Identifier: MIT OR Apache-2.0
 *
 * Healthy: a hash table of 4 MiB with open addressing, filled and searched for random keys.
 * SIZE: thousands of look-ups. */
#include "../planted.h"

enum { SLOTS = 1 << 19 };

static uint64_t *table;

HOT uint64_t *slot_of(uint64_t key) {
    uint64_t at = mix(key) % SLOTS;
    while (table[at] && table[at] != key)
        at = (at + 1) % SLOTS;
    return &table[at];
}

int main(int argc, char **argv) {
    uint64_t lookups = argument(argc, argv, 1, 1 << 20) * 1000, found = 0;
    table = calloc(SLOTS, sizeof *table);
    if (!table)
        planted_fail("not enough memory");
    for (uint64_t key = 1; key < SLOTS / 2; key++)
        *slot_of(key) = key;
    uint64_t begun = now_ns();
    for (uint64_t i = 0; i < lookups; i++)
        found += *slot_of(1 + mix(i) % SLOTS) != 0;
    return report(found, begun);
}
