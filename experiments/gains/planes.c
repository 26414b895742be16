/* SPDX-License-Identifier: MIT OR Apache-2.0
 *
 * A stack of twenty planes of 8 KiB, of which each pixel takes one word each: all twenty lie at the same offset. The
 * twin's planes are a line longer.
 *
 * SIZE: times that the stack is flattened. */
#include "../recall/planted.h"

enum { PLANES = 20, PIXELS = 8192 / sizeof(uint64_t), PITCH = PIXELS + TWINNED * LINE / sizeof(uint64_t) };

HOT uint64_t flatten(const uint64_t *planes, uint64_t weight) {
    uint64_t sum = 0;
    for (uint64_t pixel = 0; pixel < PIXELS; pixel++) {
        uint64_t flat = 0;
        for (uint64_t plane = 0; plane < PLANES; plane++)
            flat += planes[plane * PITCH + pixel] >> plane;
        sum ^= flat * weight;
    }
    return sum;
}

int main(int argc, char **argv) {
    uint64_t times = argument(argc, argv, 1, 1 << 30), digest = 0;
    uint64_t *planes = memory(PAGE, PLANES * PITCH * sizeof *planes);
    for (uint64_t plane = 0; plane < PLANES; plane++)
        for (uint64_t pixel = 0; pixel < PIXELS; pixel++)
            planes[plane * PITCH + pixel] = mix(plane * PIXELS + pixel);
    uint64_t begun = now_ns();
    for (uint64_t time = 0; time < times; time++)
        digest = mix(digest + flatten(planes, 2 * time + 1));
    return report(digest, begun);
}
