/* SPDX-License-Identifier: MIT OR Apache-2.0
 *
 * Healthy: the bodies of a scene are turned and moved, in no order. A body is as large as four lines, and each visit
 * uses all of its fields.
 * SIZE: thousands of visits. */
#include "../planted.h"

enum { BODIES = 20000 };

struct body {
    double turn[3][3], place[3], speed[3], spin[3], corner[4][3], mass, drag;
};

HOT void move_body(struct body *b) {
    for (int i = 0; i < 3; i++) {
        double force = -b->drag * b->speed[i] / b->mass;
        b->speed[i] += force;
        b->place[i] += b->speed[i];
        for (int j = 0; j < 3; j++)
            b->turn[i][j] += b->spin[j] * 0x1p-10;
    }
    for (int c = 0; c < 4; c++)
        for (int i = 0; i < 3; i++)
            b->corner[c][i] = b->corner[c][i] * 0.5 + b->place[i] + b->turn[i][c % 3];
}

int main(int argc, char **argv) {
    uint64_t visits = argument(argc, argv, 1, 1 << 20) * 1000, digest = 0, begun = now_ns();
    struct body *body = memory(2 * LINE, BODIES * sizeof *body);
    for (uint64_t i = 0; i < BODIES; i++)
        body[i] = (struct body){.speed = {1, (double)(i % 9), 2}, .spin = {0.5, 1, (double)(i % 7)},
                                .mass = 1 + (double)(i % 5), .drag = 0.25};
    for (uint64_t i = 0; i < visits; i++)
        move_body(&body[mix(i + 1) % BODIES]);
    for (uint64_t i = 0; i < BODIES; i++)
        digest = mix(digest + (uint64_t)body[i].corner[3][2]);
    return report(digest, begun);
}
