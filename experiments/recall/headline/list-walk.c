/* SPDX-License-Identifier: MIT OR Apache-2.0
 *
 * A list of nodes in random order, larger than the second level, is walked in `walk_list`.
 *
 *: names = ["walk_list", "make_node"]
 *: size = 4
 */
#include "../planted.h"

enum { NODES = 100000 };

struct node {
    struct node *next;
    uint64_t value, pad[6];
};

static struct node *node[NODES];

HOT struct node *make_node(uint64_t value) {
    struct node *made = malloc(sizeof *made);
    if (!made)
        planted_fail("not enough memory");
    made->value = value;
    return made;
}

HOT uint64_t walk_list(const struct node *at) {
    uint64_t sum = 0;
    for (; at; at = at->next)
        sum += at->value;
    return sum;
}

int main(int argc, char **argv) {
    uint64_t walks = argument(argc, argv, 1, 1 << 20), sum = 0;
    for (uint64_t i = 0; i < NODES; i++) {
        uint64_t other = mix(i) % (i + 1);
        node[i] = node[other];
        node[other] = make_node(i);
    }
    for (uint64_t i = 0; i < NODES; i++)
        node[i]->next = i + 1 < NODES ? node[i + 1] : NULL;
    uint64_t begun = now_ns();
    for (uint64_t i = 0; i < walks; i++)
        sum = mix(sum + walk_list(node[0]));
    return report(sum, begun);
}
