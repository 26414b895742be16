/* SPDX-License-Identifier: MIT OR Apache-2.0
 *
 * A pool on the heap has a flag of one byte for each worker, set while the worker works on an item. Each worker writes
 * its own byte twice an item, and looks at the others once in some thousand items. All bytes lie on one line. Each flag
 * of the twin has lines of its own. On a virtual machine of two busy CPUs this saved no time.
 *
 * SIZE: thousands of items a worker. SHAPE: number of workers.
 *
 *: half = "second"
 *: kind = "sharing"
 *: names = ["new_pool", "run_items"]
 *: reach = "inside"
 *: traced = 600
 *: measured = 15000
 *: [[case]]
 *: shape = [2]
 *: [[case]]
 *: shape = [6]
 *: traced = 200
 *: measured = 6000
 */
#include "../planted.h"

#include <stdbool.h>

enum { MOST_WORKERS = 16, SELDOM = 4096 };

struct pool {
    uint64_t workers;
    struct {
        ALONE volatile bool is;
    } busy[MOST_WORKERS];
};

static struct {
    alignas(2 * LINE) uint64_t sum;
} result[MOST_WORKERS];

static struct pool *pool_of_all;

HOT struct pool *new_pool(uint64_t workers) {
    struct pool *p = memory(2 * LINE, sizeof *p);
    p->workers = workers;
    return p;
}

static bool nobody_works(const struct pool *p) {
    for (uint64_t i = 0; i < MOST_WORKERS; i++)
        if (p->busy[i].is)
            return false;
    return true;
}

HOT void run_items(unsigned self, uint64_t items) {
    struct pool *p = pool_of_all;
    uint64_t sum = self;
    for (uint64_t i = 0; i < items; i++) {
        p->busy[self].is = true;
        sum = mix(sum + i);
        if (i % SELDOM == 0)
            sum += nobody_works(p);
        p->busy[self].is = false;
    }
    result[self].sum = sum;
}

int main(int argc, char **argv) {
    uint64_t items = argument(argc, argv, 1, 1 << 30) * 1000, digest = 0;
    unsigned workers = (unsigned)argument(argc, argv, 2, MOST_WORKERS);
    pool_of_all = new_pool(workers);
    uint64_t begun = now_ns();
    on_threads(workers, run_items, items);
    for (unsigned i = 0; i < workers; i++)
        digest = mix(digest + result[i].sum);
    return report(digest, begun);
}
