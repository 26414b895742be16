/* SPDX-License-Identifier: MIT OR Apache-2.0
 *
 * Particles as a structure of arrays: a step reads and writes nine static arrays of 32 KiB in lockstep, and reads nine
 * more, so one set of the first level has to hold eighteen lines. The twin's arrays are a line longer.
 *
 * SIZE: number of steps. */
#include "../recall/planted.h"

enum { PARTICLES = 8192, LENGTH = PARTICLES + TWINNED * LINE / 4, FIELDS = 9 };

static alignas(PAGE) float place[FIELDS][LENGTH], speed[FIELDS][LENGTH];

HOT void step(float dt) {
    for (int p = 0; p < PARTICLES; p++)
        for (int f = 0; f < FIELDS; f++)
            place[f][p] += dt * speed[f][p];
}

int main(int argc, char **argv) {
    uint64_t steps = argument(argc, argv, 1, 1 << 20), digest = 0;
    for (int f = 0; f < FIELDS; f++)
        for (int p = 0; p < PARTICLES; p++)
            speed[f][p] = (float)(mix((uint64_t)(f * PARTICLES + p)) % 100);
    uint64_t begun = now_ns();
    for (uint64_t i = 0; i < steps; i++)
        step(0.5f);
    for (int f = 0; f < FIELDS; f++)
        for (int p = 0; p < PARTICLES; p += 64)
            digest = mix(digest + (uint64_t)place[f][p]);
    return report(digest, begun);
}
