/* SPDX-License-Identifier: MIT OR Apache-2.0
 *
 * Twenty-four rings of 8 KiB, one behind the other; a message goes into each in turn and comes out of each two rounds
 * later, so that all heads and tails lie at the same offset of their rings. The twin's rings are a line longer.
 *
 * SIZE: thousands of messages. */
#include "../recall/planted.h"

enum { RINGS = 24, SLOTS = 8192 / LINE, BEHIND = 2, PITCH = SLOTS + TWINNED };

struct slot {
    uint64_t sender, sequence, body[6];
};

HOT void send(struct slot *rings, uint64_t round) {
    for (uint64_t ring = 0; ring < RINGS; ring++) {
        struct slot *to = &rings[ring * PITCH + round % SLOTS];
        to->sender = ring;
        to->sequence = round;
    }
}

HOT uint64_t receive(const struct slot *rings, uint64_t round) {
    uint64_t sum = 0;
    for (uint64_t ring = 0; ring < RINGS; ring++) {
        const struct slot *from = &rings[ring * PITCH + round % SLOTS];
        sum += from->sender ^ from->sequence << 5;
    }
    return sum;
}

int main(int argc, char **argv) {
    uint64_t rounds = argument(argc, argv, 1, 1 << 30) * 1000 / RINGS, digest = 0;
    struct slot *rings = memory(PAGE, RINGS * PITCH * sizeof *rings);
    uint64_t begun = now_ns();
    for (uint64_t round = BEHIND; round < rounds + BEHIND; round++) {
        send(rings, round);
        digest = mix(digest + receive(rings, round - BEHIND));
    }
    return report(digest, begun);
}
