/* SPDX-License-Identifier: MIT OR Apache-2.0
 *
 * Walks a list in random order. Its nodes have a key at one end and a link at the other, with text between that the
 * walk does not use. --apart keeps the text in an array of its own, which is the cure. */
#include "subject.h"

enum { TEXT_BYTES = 240 };
struct node {
    uint64_t key;
    char text[TEXT_BYTES];
    struct node *next;
};
struct short_node {
    uint64_t key;
    struct short_node *next;
};

static __attribute__((noinline)) uint64_t walk(const struct node *at, uint64_t steps) {
    uint64_t sum = 0;
    for (; steps; steps--) {
        sum += at->key;
        at = at->next;
    }
    return sum;
}

static __attribute__((noinline)) uint64_t walk_short(const struct short_node *at, uint64_t steps) {
    uint64_t sum = 0;
    for (; steps; steps--) {
        sum += at->key;
        at = at->next;
    }
    return sum;
}

/* A random order of 0..count. */
static uint64_t *shuffled(uint64_t count) {
    uint64_t *order = malloc(count * sizeof *order), state = 1;
    for (uint64_t at = 0; order && at < count; at++)
        order[at] = at;
    for (uint64_t at = count - 1; order && at > 0; at--) {
        state = state * 6364136223846793005u + 1442695040888963407u;
        uint64_t other = (state >> 33) % (at + 1), kept = order[at];
        order[at] = order[other];
        order[other] = kept;
    }
    return order;
}

int main(int argc, char **argv) {
    uint64_t nodes = 20000, rounds = 30, apart = 0;
    const struct subject_option options[] = {
        {"nodes", "of the list", &nodes, 0},
        {"rounds", "times that the list is walked", &rounds, 0},
        {"apart", "keep the text apart from the nodes", &apart, 1},
        {0},
    };
    subject_options(argc, argv, "Walks a list in random order, and uses the two ends of its nodes.", options);
    if (nodes < 2)
        subject_fail(argv[0], "--nodes is at least 2");
    uint64_t *order = shuffled(nodes);
    struct node *far = apart ? NULL : calloc(nodes, sizeof *far);
    struct short_node *near = apart ? calloc(nodes, sizeof *near) : NULL;
    char (*texts)[TEXT_BYTES] = apart ? calloc(nodes, sizeof *texts) : NULL;
    if (!order || (!far && !near) || (apart && !texts))
        subject_fail(argv[0], "not enough memory for that number");
    for (uint64_t at = 0; at < nodes; at++) {
        uint64_t from = order[at], to = order[(at + 1) % nodes];
        char *text = apart ? texts[from] : far[from].text;
        text[0] = (char)from;
        if (apart)
            near[from] = (struct short_node){from, &near[to]};
        else
            far[from].key = from, far[from].next = &far[to];
    }
    double from = subject_now_ns();
    uint64_t steps = rounds * nodes, sum = apart ? walk_short(near, steps) : walk(far, steps);
    printf("far-fields: nodes=%llu sum=%llu ns_per_step=%.2f\n", (unsigned long long)nodes, (unsigned long long)sum,
           (subject_now_ns() - from) / (double)(steps ? steps : 1));
    return 0;
}
