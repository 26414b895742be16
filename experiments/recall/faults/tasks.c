/* SPDX-License-Identifier: MIT OR Apache-2.0
 *
 * Task structures of 8 KiB, aligned to 8 KiB, in a linked list, as in old kernels: every walk over the list reads one
 * line at the same offset of each. The twin puts each structure some lines further into its 8 KiB.
 *
 * SIZE: thousands of tasks visited. SHAPE: number of tasks.
 *
 *: kind = "crowd"
 *: names = ["pick_next"]
 *: reach = "inside"
 *: traced = 1500
 *: measured = 15000
 *: [[case]]
 *: shape = [20]
 *: pieces = 20
 *: [[case]]
 *: shape = [64]
 *: pieces = 64
 *: [[case]]
 *: shape = [300]
 *: pieces = 300
 */
#include "../planted.h"

enum { MOST_TASKS = 512, TASK_BYTES = 8192 };

struct task {
    struct task *next;
    int64_t counter, nice, goodness;
};

HOT int64_t pick_next(struct task *first) {
    int64_t best = -1000;
    for (struct task *t = first; t; t = t->next) {
        t->goodness = t->counter + 20 - t->nice;
        best = t->goodness > best ? t->goodness : best;
    }
    return best;
}

int main(int argc, char **argv) {
    uint64_t visits = argument(argc, argv, 1, 1 << 30) * 1000, tasks = argument(argc, argv, 2, MOST_TASKS), sum = 0;
    struct task *first = NULL;
    for (uint64_t i = 0; i < tasks; i++) {
        char *begin = memory(TASK_BYTES, TASK_BYTES);
        struct task *t = (struct task *)(begin + (TWINNED ? i % L1_SETS * LINE : 0));
        *t = (struct task){first, (int64_t)(mix(i) % 50), (int64_t)(i % 20), 0};
        first = t;
    }
    uint64_t begun = now_ns();
    for (uint64_t round = 0; round < visits / tasks; round++) {
        first->counter = (int64_t)(round % 60);
        sum = mix(sum + (uint64_t)pick_next(first));
    }
    return report(sum, begun);
}
