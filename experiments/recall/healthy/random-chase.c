/* SPDX-License-Identifier: MIT OR Apache-2.0
 *
 * Healthy: a chase through nodes of a line each, in random order. SIZE: thousands of steps. SHAPE: KiB of nodes. */
#include "../planted.h"

struct node {
    alignas(LINE) struct node *next;
    uint64_t value;
};

HOT uint64_t chase(struct node *at, uint64_t steps) {
    uint64_t sum = 0;
    for (uint64_t i = 0; i < steps; i++, at = at->next)
        sum += at->value;
    return sum;
}

int main(int argc, char **argv) {
    uint64_t steps = argument(argc, argv, 1, 1 << 20) * 1000, nodes = argument(argc, argv, 2, 1 << 20) * 1024 / LINE;
    struct node *node = memory(LINE, nodes * sizeof *node);
    uint64_t *order = memory(LINE, nodes * sizeof *order);
    for (uint64_t i = 0; i < nodes; i++) {
        uint64_t other = mix(i) % (i + 1);
        order[i] = order[other];
        order[other] = i;
    }
    for (uint64_t i = 0; i < nodes; i++)
        node[order[i]] = (struct node){&node[order[(i + 1) % nodes]], i};
    uint64_t begun = now_ns();
    return report(chase(node, steps), begun);
}
