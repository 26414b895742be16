/* SPDX-License-Identifier: MIT OR Apache-2.0
 *
 * A spin lock alone on its line, taken by two threads: true sharing. To split the line would not help, only to take the
 * lock less often. Each thread of the twin takes a lock of its own.
 *
 * SIZE: thousands of times that each thread locks.
 *
 *: kind = "sharing"
 *: split = false
 *: names = ["big_lock", "ledger", "book"]
 *: reach = "inside"
 *: traced = 250
 *: measured = 3000
 */
#include "../planted.h"

enum { THREADS = 2 };

static struct {
    alignas(2 * LINE) int taken;
} big_lock[THREADS];

static struct {
    alignas(2 * LINE) uint64_t total;
} ledger[THREADS];

static void lock(int *taken) {
    while (__atomic_exchange_n(taken, 1, __ATOMIC_ACQUIRE))
        while (__atomic_load_n(taken, __ATOMIC_RELAXED))
            sched_yield();
}

HOT void book(unsigned self, uint64_t times) {
    unsigned own = TWINNED ? self : 0;
    for (uint64_t i = 0; i < times; i++) {
        lock(&big_lock[own].taken);
        ledger[own].total += mix(i + self) & 1023;
        __atomic_store_n(&big_lock[own].taken, 0, __ATOMIC_RELEASE);
    }
}

int main(int argc, char **argv) {
    uint64_t times = argument(argc, argv, 1, 1 << 30) * 1000;
    uint64_t begun = now_ns();
    on_threads(THREADS, book, times);
    return report(ledger[0].total + ledger[1].total, begun);
}
