/* SPDX-License-Identifier: MIT OR Apache-2.0
 *
 * Every request of every thread takes its number from one counter that is alone on its line: true sharing. To split the
 * line would not help, only to take numbers less often or from counters of one's own. The twin does the latter: each
 * thread counts for itself and gives every n-th number.
 *
 * SIZE: thousands of requests a thread. SHAPE: number of threads.
 *
 *: half = "second"
 *: kind = "sharing"
 *: split = false
 *: names = ["last_number", "next_number"]
 *: reach = "inside"
 *: traced = 300
 *: measured = 4000
 *: [[case]]
 *: shape = [2]
 *: [[case]]
 *: shape = [4]
 *: traced = 150
 *: measured = 2000
 */
#include "../planted.h"

enum { MOST_CLIENTS = 8, STEPS = 3 };

static struct {
    alignas(2 * LINE) uint64_t value;
} last_number[MOST_CLIENTS], result[MOST_CLIENTS];

static unsigned clients;

HOT uint64_t next_number(unsigned self) {
    if (TWINNED)
        return __atomic_fetch_add(&last_number[self].value, 1, __ATOMIC_RELAXED) * clients + self;
    return __atomic_fetch_add(&last_number[0].value, 1, __ATOMIC_RELAXED);
}

static void work(unsigned self, uint64_t times) {
    uint64_t sum = 0;
    for (uint64_t i = 0; i < times; i++) {
        uint64_t number = next_number(self);
        for (int step = 0; step < STEPS; step++)
            number = mix(number);
        sum += number;
    }
    result[self].value = sum;
}

int main(int argc, char **argv) {
    uint64_t times = argument(argc, argv, 1, 1 << 30) * 1000, digest = 0;
    clients = (unsigned)argument(argc, argv, 2, MOST_CLIENTS);
    uint64_t begun = now_ns();
    on_threads(clients, work, times);
    for (unsigned i = 0; i < clients; i++)
        digest += result[i].value;
    return report(digest, begun);
}
