/* SPDX-License-Identifier: MIT OR Apache-2.0
 *
 * A walk along a random cycle through --size bytes: every load depends on the one before, so the time a step is the
 * latency of the level that holds the buffer. All misses are capacity (or first) misses: no layout helps. */
#include "subject.h"

struct node {
    struct node *next;
    char pad[56];
};

static __attribute__((noinline)) struct node *chase(struct node *at, uint64_t steps) {
    while (steps--)
        at = at->next;
    return at;
}

int main(int argc, char **argv) {
    uint64_t bytes = 1 << 20, steps = 4 << 20, seed = 1;
    const struct subject_option options[] = {
        {"size", "bytes walked", &bytes, 0},
        {"steps", "loads", &steps, 0},
        {"seed", "which random cycle", &seed, 0},
        {0},
    };
    subject_options(argc, argv, "A dependent walk along a random cycle of 64-byte nodes.", options);
    uint64_t nodes = bytes / sizeof(struct node);
    if (nodes < 2)
        subject_fail(argv[0], "--size needs at least 128 bytes");
    struct node *node = subject_memory(argv[0], 4096, nodes * sizeof *node);
    /* Sattolo's shuffle of the successors: one cycle through all nodes. */
    for (uint64_t i = 0; i < nodes; i++)
        node[i].next = &node[i];
    for (uint64_t i = nodes - 1; i > 0; i--) {
        uint64_t j = subject_random(&seed) % i;
        struct node *held = node[i].next;
        node[i].next = node[j].next;
        node[j].next = held;
    }
    struct node *at = chase(node, nodes);
    double start = subject_now_ns();
    at = chase(at, steps);
    double ns = subject_now_ns() - start;
    printf("pointer-chase: nodes=%llu steps=%llu end=%llu ns_per_step=%.2f\n", (unsigned long long)nodes,
           (unsigned long long)steps, (unsigned long long)(at - node), steps ? ns / steps : 0);
    return 0;
}
