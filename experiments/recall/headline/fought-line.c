/* SPDX-License-Identifier: MIT OR Apache-2.0
 *
 * Two threads add to neighbouring words of `tallies`.
 *
 *: names = ["tallies", "tally"]
 *: size = 1500
 */
#include "../planted.h"

static volatile uint64_t tallies[2];

HOT void tally(unsigned self, uint64_t times) {
    for (uint64_t i = 0; i < times; i++)
        tallies[self] += mix(i) & 1;
}

int main(int argc, char **argv) {
    uint64_t times = argument(argc, argv, 1, 1 << 20) * 1000;
    uint64_t begun = now_ns();
    on_threads(2, tally, times);
    return report(tallies[0] + tallies[1], begun);
}
