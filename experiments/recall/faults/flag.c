/* SPDX-License-Identifier: MIT OR Apache-2.0
 *
 * A flag that workers read before every piece of work, and nobody writes, lies beside a counter that one other thread
 * writes all the time. The twin's counter has lines of its own.
 *
 * SIZE: thousands of pieces a worker. SHAPE: number of workers.
 *
 *: kind = "sharing"
 *: names = ["control"]
 *: reach = "inside"
 *: traced = 300
 *: measured = 15000
 *: [[case]]
 *: shape = [1]
 *: [[case]]
 *: shape = [3]
 */
#include "../planted.h"

enum { MOST_WORKERS = 7 };

static struct {
    alignas(2 * LINE) volatile int stop;
    ALONE volatile uint64_t ticks;
} control;

static struct {
    alignas(2 * LINE) uint64_t sum;
} result[MOST_WORKERS + 1];

HOT void tick(uint64_t times) {
    for (uint64_t i = 0; i < times; i++)
        control.ticks += mix(i) & 1;
}

HOT void work_pieces(unsigned self, uint64_t times) {
    uint64_t sum = self;
    for (uint64_t i = 0; i < times && !control.stop; i++)
        sum = mix(sum + i);
    result[self].sum = sum;
}

static void work(unsigned self, uint64_t times) { self == 0 ? tick(times) : work_pieces(self, times); }

int main(int argc, char **argv) {
    uint64_t times = argument(argc, argv, 1, 1 << 30) * 1000, digest = 0;
    unsigned workers = (unsigned)argument(argc, argv, 2, MOST_WORKERS);
    uint64_t begun = now_ns();
    on_threads(workers + 1, work, times);
    for (unsigned i = 1; i <= workers; i++)
        digest = mix(digest + result[i].sum);
    return report(digest + control.ticks, begun);
}
