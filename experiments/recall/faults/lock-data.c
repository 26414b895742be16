/* SPDX-License-Identifier: MIT OR Apache-2.0
 *
 * A lock and the data that it protects on one line, used by two threads: true sharing, since each thread wants all of
 * it. To split the line would make it worse. Each thread of the twin has an account of its own.
 *
 * SIZE: thousands of payments a thread.
 *
 *: kind = "sharing"
 *: split = false
 *: names = ["account", "pay"]
 *: reach = "inside"
 *: traced = 250
 *: measured = 3000
 */
#include "../planted.h"

enum { THREADS = 2 };

static struct {
    alignas(2 * LINE) int taken;
    uint64_t balance, payments;
} account[THREADS];

static void lock(int *taken) {
    while (__atomic_exchange_n(taken, 1, __ATOMIC_ACQUIRE))
        while (__atomic_load_n(taken, __ATOMIC_RELAXED))
            sched_yield();
}

HOT void pay(unsigned self, uint64_t times) {
    unsigned own = TWINNED ? self : 0;
    for (uint64_t i = 0; i < times; i++) {
        lock(&account[own].taken);
        account[own].balance += mix(i + self) & 1023;
        account[own].payments++;
        __atomic_store_n(&account[own].taken, 0, __ATOMIC_RELEASE);
    }
}

int main(int argc, char **argv) {
    uint64_t times = argument(argc, argv, 1, 1 << 30) * 1000;
    uint64_t begun = now_ns();
    on_threads(THREADS, pay, times);
    return report(mix(account[0].balance + account[1].balance) + account[0].payments + account[1].payments, begun);
}
