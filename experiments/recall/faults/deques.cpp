// SPDX-License-Identifier: MIT OR Apache-2.0
//
// Each worker of a pool pushes tasks on a work-stealing deque of its own and pops them again; nobody is idle, so nobody
// steals. The deques are small objects that `new` gives one after the other, two to a line. The twin's class is
// aligned, so that each deque has lines of its own.
//
// SIZE: thousands of tasks a worker. SHAPE: number of workers.
//
//: half = "second"
//: kind = "sharing"
//: names = ["make_deque", "push_bottom", "pop_bottom"]
//: reach = "outside"
//: traced = 75
//: measured = 2500
//: [[case]]
//: shape = [2]
//: [[case]]
//: shape = [4]
//: traced = 40
//: measured = 1500
#include "../planted.h"

#include <atomic>

enum { MOST_WORKERS = 8, RING = 256 };

static struct {
    alignas(2 * LINE) uint64_t task[RING], sum;
} worker[MOST_WORKERS];

class Deque {
public:
    explicit Deque(uint64_t *ring) : ring_(ring) {}

    HOT void push_bottom(uint64_t task) {
        int64_t bottom = bottom_.load(std::memory_order_relaxed);
        ring_[bottom % RING] = task;
        bottom_.store(bottom + 1, std::memory_order_release);
    }

    HOT uint64_t pop_bottom() {
        int64_t bottom = bottom_.load(std::memory_order_relaxed) - 1;
        bottom_.store(bottom, std::memory_order_seq_cst);
        return top_.load(std::memory_order_relaxed) <= bottom ? ring_[bottom % RING] : 0;
    }

private:
    ALONE std::atomic<int64_t> top_{0};
    std::atomic<int64_t> bottom_{0};
    uint64_t *ring_;
};

static Deque *deque[MOST_WORKERS];

HOT Deque *make_deque(unsigned n) { return new Deque(worker[n].task); }

static void work(unsigned self, uint64_t times) {
    uint64_t sum = 0;
    for (uint64_t i = 0; i < times; i += 2) {
        deque[self]->push_bottom(mix(i + self));
        deque[self]->push_bottom(i);
        sum = mix(sum + deque[self]->pop_bottom());
        sum = mix(sum + deque[self]->pop_bottom());
    }
    worker[self].sum = sum;
}

int main(int argc, char **argv) {
    uint64_t times = argument(argc, argv, 1, 1 << 30) * 1000, digest = 0;
    unsigned workers = (unsigned)argument(argc, argv, 2, MOST_WORKERS);
    do // Until it ends on its line: the next one begins there.
        deque[0] = make_deque(0);
    while ((uintptr_t)(deque[0] + 1) / LINE == (uintptr_t)deque[0] / LINE + 1);
    for (unsigned n = 1; n < workers; n++)
        deque[n] = make_deque(n);
    uint64_t begun = now_ns();
    on_threads(workers, work, times);
    for (unsigned n = 0; n < workers; n++)
        digest = mix(digest + worker[n].sum);
    return report(digest, begun);
}
