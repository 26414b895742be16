/* SPDX-License-Identifier: MIT OR Apache-2.0
 *
 * One thread publishes a price on a line with a sequence lock, and other threads read the newest price all the time:
 * true sharing, since the readers want all that the writer writes. The twin's readers each read a copy of their own,
 * which nobody writes. The two parts of a price always have the same sum, so both compute the same.
 * On a virtual machine of two busy CPUs the twin saved no time, or little.
 *
 * SIZE: thousands of prices published, and read by each reader. SHAPE: number of readers.
 *
 *: half = "second"
 *: kind = "sharing"
 *: split = false
 *: names = ["newest_price", "publish_price", "read_price"]
 *: reach = "inside"
 *: traced = 180
 *: measured = 4500
 *: [[case]]
 *: shape = [1]
 *: [[case]]
 *: shape = [3]
 *: traced = 90
 *: measured = 2500
 */
#include "../planted.h"

enum { MOST_READERS = 7, WHOLE = 1000, STEPS = 3 };

static struct price {
    alignas(2 * LINE) uint64_t sequence;
    volatile uint64_t bid, rest;
} newest_price[MOST_READERS + 1];

static struct {
    alignas(2 * LINE) uint64_t sum;
} result[MOST_READERS + 1];

HOT void publish_price(struct price *p, uint64_t bid) {
    __atomic_store_n(&p->sequence, p->sequence + 1, __ATOMIC_RELAXED);
    __atomic_thread_fence(__ATOMIC_RELEASE);
    p->bid = bid;
    p->rest = WHOLE - bid;
    __atomic_store_n(&p->sequence, p->sequence + 1, __ATOMIC_RELEASE);
}

HOT uint64_t read_price(const struct price *p) {
    for (;;) {
        uint64_t before = __atomic_load_n(&p->sequence, __ATOMIC_ACQUIRE), sum = p->bid + p->rest;
        __atomic_thread_fence(__ATOMIC_ACQUIRE);
        if (before % 2 == 0 && __atomic_load_n(&p->sequence, __ATOMIC_RELAXED) == before)
            return sum;
        sched_yield();
    }
}

static void work(unsigned self, uint64_t times) {
    uint64_t sum = self;
    for (uint64_t i = 0; i < times; i++) {
        for (int step = 0; step < STEPS; step++)
            sum = mix(sum + i);
        if (self == 0)
            publish_price(&newest_price[0], sum % WHOLE);
        else
            sum += read_price(&newest_price[TWINNED ? self : 0]);
    }
    result[self].sum = sum;
}

int main(int argc, char **argv) {
    uint64_t times = argument(argc, argv, 1, 1 << 30) * 1000, digest = 0;
    unsigned readers = (unsigned)argument(argc, argv, 2, MOST_READERS);
    for (unsigned i = 0; i <= readers; i++)
        publish_price(&newest_price[i], WHOLE / 2);
    uint64_t begun = now_ns();
    on_threads(readers + 1, work, times);
    for (unsigned i = 0; i <= readers; i++)
        digest = mix(digest + result[i].sum);
    return report(digest, begun);
}
