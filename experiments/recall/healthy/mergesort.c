/* SPDX-License-Identifier: MIT OR Apache-2.0
 *
 * Healthy: numbers are sorted by merging. SIZE: thousands of numbers. */
#include "../planted.h"

HOT void merge(const uint64_t *from, uint64_t *to, uint64_t left, uint64_t middle, uint64_t right) {
    uint64_t l = left, r = middle;
    for (uint64_t i = left; i < right; i++)
        to[i] = l < middle && (r == right || from[l] <= from[r]) ? from[l++] : from[r++];
}

int main(int argc, char **argv) {
    uint64_t count = argument(argc, argv, 1, 1 << 20) * 1000;
    uint64_t *from = malloc(count * sizeof *from), *to = malloc(count * sizeof *to);
    if (!from || !to)
        planted_fail("not enough memory");
    for (uint64_t i = 0; i < count; i++)
        from[i] = mix(i);
    uint64_t begun = now_ns();
    for (uint64_t width = 1; width < count; width *= 2) {
        for (uint64_t left = 0; left < count; left += 2 * width) {
            uint64_t middle = left + width < count ? left + width : count;
            merge(from, to, left, middle, middle + width < count ? middle + width : count);
        }
        uint64_t *sorted = to;
        to = from;
        from = sorted;
    }
    return report(mix(from[0]) + from[count / 2], begun);
}
