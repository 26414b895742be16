/* SPDX-License-Identifier: MIT OR Apache-2.0
 *
 * Random look-ups in a table of 16 MiB take most of the time, in `lookup` reading `prices`.
 *
 *: names = ["lookup", "prices"]
 *: size = 1000
 */
#include "../planted.h"

enum { ENTRIES = 1 << 21 };

static uint64_t prices[ENTRIES];

HOT uint64_t lookup(uint64_t key) { return prices[mix(key) % ENTRIES]; }

int main(int argc, char **argv) {
    uint64_t lookups = argument(argc, argv, 1, 1 << 20) * 1000, sum = 0;
    for (uint64_t i = 0; i < ENTRIES; i += PAGE / 8)
        prices[i] = i;
    uint64_t begun = now_ns();
    for (uint64_t i = 0; i < lookups; i++)
        sum += lookup(sum + i);
    return report(sum, begun);
}
