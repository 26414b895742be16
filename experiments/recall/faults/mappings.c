/* SPDX-License-Identifier: MIT OR Apache-2.0
 *
 * Particles as a structure of arrays, each attribute in a mapping of its own. One step reads all attributes of a
 * particle, which lie in one set of the first level, and writes the first one. The twin begins each attribute a line
 * later than the one before.
 *
 * SIZE: millions of attributes read. SHAPE: number of attributes.
 *
 *: kind = "crowd"
 *: names = ["step"]
 *: reach = "inside"
 *: traced = 3
 *: measured = 100
 *: [[case]]
 *: shape = [14]
 *: pieces = 14
 *: [[case]]
 *: shape = [26]
 *: pieces = 26
 *: [[case]]
 *: shape = [32]
 *: pieces = 32
 *: [[case]]
 *: shape = [160]
 *: pieces = 160
 */
#include "../planted.h"

enum { MOST_ATTRIBUTES = 256, MAPPING_BYTES = 64 << 10, PARTICLES = 2048 };

static float *attribute[MOST_ATTRIBUTES];

HOT void step(uint64_t attributes) {
    for (uint64_t p = 0; p < PARTICLES; p++) {
        float force = 0;
        for (uint64_t a = 0; a < attributes; a++)
            force += attribute[a][p];
        attribute[0][p] = force * 0.001f;
    }
}

int main(int argc, char **argv) {
    uint64_t reads = argument(argc, argv, 1, 1 << 20) * 1000000;
    uint64_t attributes = argument(argc, argv, 2, MOST_ATTRIBUTES), digest = 0;
    for (uint64_t a = 0; a < attributes; a++) {
        char *begin = mapping(MAPPING_BYTES);
        attribute[a] = (float *)(begin + (TWINNED ? a % L1_SETS * LINE : 0));
        for (uint64_t p = 0; p < PARTICLES; p++)
            attribute[a][p] = (float)(mix(a * PARTICLES + p) % 1000);
    }
    uint64_t begun = now_ns();
    for (uint64_t round = 0; round < reads / (attributes * PARTICLES); round++)
        step(attributes);
    for (uint64_t p = 0; p < PARTICLES; p++)
        digest = mix(digest + (uint64_t)(attribute[0][p] * 16));
    return report(digest, begun);
}
