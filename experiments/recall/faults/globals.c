/* SPDX-License-Identifier: MIT OR Apache-2.0
 *
 * Four global variables that the linker puts side by side. Three are settings that workers read for each request and
 * nobody writes; the fourth is a statistic to which one other thread adds all the time. The twin's statistic has lines
 * of its own.
 *
 * SIZE: thousands of requests a worker. SHAPE: number of workers.
 *
 *: half = "second"
 *: kind = "sharing"
 *: names = ["log_level", "retry_limit", "time_limit", "bytes_logged"]
 *: reach = "inside"
 *: traced = 500
 *: measured = 10000
 *: [[case]]
 *: shape = [1]
 *: [[case]]
 *: shape = [3]
 *: traced = 300
 */
#include "../planted.h"

enum { MOST_WORKERS = 7 };

/* One section, and in it the order of this file. */
#define SIDE_BY_SIDE __attribute__((section(".data.settings"), no_reorder))

SIDE_BY_SIDE alignas(2 * LINE) volatile int log_level = 3;
SIDE_BY_SIDE volatile int retry_limit = 5;
SIDE_BY_SIDE volatile uint64_t time_limit = 30;
SIDE_BY_SIDE ALONE uint64_t bytes_logged = 0;

static struct {
    alignas(2 * LINE) uint64_t sum;
} result[MOST_WORKERS + 1];

HOT void write_log(uint64_t times) {
    for (uint64_t i = 0; i < times; i++)
        __atomic_fetch_add(&bytes_logged, mix(i) & 127, __ATOMIC_RELAXED);
}

HOT void serve_requests(unsigned self, uint64_t times) {
    uint64_t sum = self;
    for (uint64_t i = 0; i < times; i++)
        if ((int)(i & 3) <= log_level)
            sum = mix(sum + (i & 1 ? (uint64_t)retry_limit : time_limit));
    result[self].sum = sum;
}

static void work(unsigned self, uint64_t times) { self == 0 ? write_log(times) : serve_requests(self, times); }

int main(int argc, char **argv) {
    uint64_t times = argument(argc, argv, 1, 1 << 30) * 1000, digest = 0;
    unsigned workers = (unsigned)argument(argc, argv, 2, MOST_WORKERS);
    if (!TWINNED && (uintptr_t)&bytes_logged / LINE != (uintptr_t)&log_level / LINE)
        planted_fail("the linker did not put the variables side by side");
    uint64_t begun = now_ns();
    on_threads(workers + 1, work, times);
    for (unsigned i = 1; i <= workers; i++)
        digest = mix(digest + result[i].sum);
    return report(digest + bytes_logged, begun);
}
