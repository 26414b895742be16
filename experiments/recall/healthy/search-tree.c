/* SPDX-License-Identifier: MIT OR Apache-2.0
 *
 * Healthy: a binary search tree of small malloc blocks, searched for random keys. SIZE: thousands of look-ups. */
#include "../planted.h"

enum { KEYS = 30000 };

struct node {
    struct node *child[2];
    uint64_t key, value;
};

HOT struct node **find(struct node **at, uint64_t key) {
    while (*at && (*at)->key != key)
        at = &(*at)->child[key > (*at)->key];
    return at;
}

int main(int argc, char **argv) {
    uint64_t lookups = argument(argc, argv, 1, 1 << 20) * 1000, sum = 0;
    struct node *root = NULL;
    for (uint64_t i = 0; i < KEYS; i++) {
        struct node **at = find(&root, mix(i));
        if (!(*at = malloc(sizeof **at)))
            planted_fail("not enough memory");
        **at = (struct node){{NULL, NULL}, mix(i), i};
    }
    uint64_t begun = now_ns();
    for (uint64_t i = 0; i < lookups; i++)
        sum += (*find(&root, mix(mix(i) % KEYS)))->value;
    return report(sum, begun);
}
