/* SPDX-License-Identifier: MIT OR Apache-2.0
 *
 * An order book: a balanced search tree with two million small blocks of malloc, looked up by random order numbers. The
 * lower half of a path lies in pages that no recent look-up touched. The twin's nodes lie as far apart, in pages of
 * 2 MiB.
 *
 * SIZE: thousands of look-ups.
 *
 *: half = "third"
 *: kind = "huge"
 *: names = ["find_order", "new_order", "plant_orders"]
 *: reach = "outside"
 *: traced = 700
 *: measured = 700
 */
#include "../planted.h"

enum { ORDERS = 2000000, NODE_BYTES = 48 };

struct order {
    uint64_t number, amount, price;
    struct order *earlier, *later;
};

HOT struct order *new_order(void) {
#ifdef TWIN
    static char *nodes;
    if (!nodes)
        nodes = (char *)paged((size_t)ORDERS * NODE_BYTES);
    struct order *one = (struct order *)nodes;
    nodes += NODE_BYTES; /* As far as malloc places blocks of this size. */
#else
    struct order *one = malloc(sizeof *one);
    if (!one)
        planted_fail("not enough memory");
#endif
    return one;
}

/* The tree of the orders from `from` up to `to`. */
static struct order *plant_orders(uint64_t from, uint64_t to) {
    if (from == to)
        return NULL;
    uint64_t middle = (from + to) / 2;
    struct order *one = new_order();
    *one = (struct order){3 * middle, middle % 90, mix(middle), NULL, NULL};
    one->earlier = plant_orders(from, middle);
    one->later = plant_orders(middle + 1, to);
    return one;
}

HOT uint64_t find_order(const struct order *at, uint64_t number) {
    while (at && at->number != number)
        at = number < at->number ? at->earlier : at->later;
    return at ? at->price + at->amount : 0;
}

int main(int argc, char **argv) {
    uint64_t times = argument(argc, argv, 1, 1 << 30) * 1000, digest = 0;
    uint64_t begun = now_ns();
    const struct order *book = plant_orders(0, ORDERS);
    for (uint64_t i = 0; i < times; i++)
        digest += find_order(book, mix(i + 1) % (3 * (uint64_t)ORDERS));
    return report(mix(digest), begun);
}
