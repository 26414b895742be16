/* SPDX-License-Identifier: MIT OR Apache-2.0
 *
 * A parallel loop in which threads take the elements of one array in turn: thread 0 the first, thread 1 the second, and so
 * round. Each thread writes elements of its own, but every line of the array belongs to all of them. The twin's threads
 * take one run of elements each.
 *
 * SIZE: thousands of elements that each thread computes. SHAPE: number of threads, a power of two.
 *
 *: half = "second"
 *: kind = "sharing"
 *: names = ["cell_heat", "cool_down"]
 *: reach = "inside"
 *: traced = 700
 *: measured = 40000
 *: [[case]]
 *: shape = [2]
 *: [[case]]
 *: shape = [4]
 *: traced = 350
 *: measured = 20000
 */
#include "../planted.h"

enum { ELEMENTS = 1024, MOST_TAKERS = 8 };

static alignas(2 * LINE) uint32_t cell_heat[ELEMENTS];
static unsigned takers;

HOT void cool_down(uint64_t first, uint64_t end, uint64_t step) {
    for (uint64_t i = first; i < end; i += step)
        cell_heat[i] = (cell_heat[i] * 3 + (uint32_t)mix(i)) / 4;
}

static void work(unsigned self, uint64_t times) {
    uint64_t run = ELEMENTS / takers;
    for (uint64_t i = 0; i < times / run; i++)
        TWINNED ? cool_down(self * run, (self + 1) * run, 1) : cool_down(self, ELEMENTS, takers);
}

int main(int argc, char **argv) {
    uint64_t times = argument(argc, argv, 1, 1 << 30) * 1000, digest = 0;
    takers = (unsigned)argument(argc, argv, 2, MOST_TAKERS);
    uint64_t begun = now_ns();
    on_threads(takers, work, times);
    for (uint64_t i = 0; i < ELEMENTS; i++)
        digest = mix(digest + cell_heat[i]);
    return report(digest, begun);
}
