// SPDX-License-Identifier: MIT OR Apache-2.0
//
// A C++ object with the statistics of a server: one thread counts requests, another thread counts errors, and both
// counters lie on one line. The twin's counters have lines of their own.
//
// SIZE: thousands of counts a thread.
//
//: kind = "sharing"
//: names = ["server_stats"]
//: reach = "inside"
//: traced = 300
//: measured = 6000
#include "../planted.h"

#include <atomic>

class Stats {
public:
    HOT void note_request(uint64_t bytes) { requests_.fetch_add(bytes, std::memory_order_relaxed); }
    HOT void note_error(uint64_t code) { errors_.fetch_add(code, std::memory_order_relaxed); }
    uint64_t digest() const { return mix(requests_) + errors_; }

private:
    ALONE std::atomic<uint64_t> requests_{0};
    ALONE std::atomic<uint64_t> errors_{0};
};

alignas(2 * LINE) static Stats server_stats;

static void work(unsigned self, uint64_t times) {
    for (uint64_t i = 0; i < times; i++)
        self == 0 ? server_stats.note_request(mix(i) & 1023) : server_stats.note_error(mix(i) & 3);
}

int main(int argc, char **argv) {
    uint64_t times = argument(argc, argv, 1, 1 << 30) * 1000;
    uint64_t begun = now_ns();
    on_threads(2, work, times);
    return report(server_stats.digest(), begun);
}
