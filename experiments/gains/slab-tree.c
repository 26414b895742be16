/* SPDX-License-Identifier: MIT OR Apache-2.0
 *
 * A binary tree with the heads of slabs of 1 KiB as nodes: keys and children of 511 nodes lie in four sets of 64 of the
 * first level. Each comparison decides which node is wanted next. The twin's slabs are a line longer.
 *
 * SIZE: thousands of look-ups. */
#include "../recall/planted.h"

enum { DEPTH = 9, NODES = (1 << DEPTH) - 1, SLAB = 1024 + TWINNED * LINE };

struct node {
    uint64_t key;
    struct node *child[2];
    uint64_t visits;
};

static struct node *plant(char *slabs, uint64_t low, uint64_t high) {
    if (low >= high)
        return NULL;
    uint64_t middle = (low + high) / 2;
    /* Slabs are handed out in another order than keys. */
    struct node *node = (struct node *)(slabs + middle * 167 % NODES * SLAB);
    *node = (struct node){middle, {plant(slabs, low, middle), plant(slabs, middle + 1, high)}, 0};
    return node;
}

HOT uint64_t look_up(struct node *node, uint64_t key) {
    uint64_t passed = 0;
    for (; node && node->key != key; node = node->child[key > node->key])
        passed++;
    return passed;
}

int main(int argc, char **argv) {
    uint64_t times = argument(argc, argv, 1, 1 << 30) * 1000, digest = 1;
    struct node *root = plant(memory(PAGE, (size_t)NODES * SLAB), 0, NODES);
    uint64_t begun = now_ns();
    for (uint64_t i = 0; i < times; i++)
        digest += look_up(root, mix(i) % NODES);
    return report(mix(digest), begun);
}
