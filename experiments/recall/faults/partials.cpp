// SPDX-License-Identifier: MIT OR Apache-2.0
//
// A std::vector with a partial result for each thread: one heap block, whose elements lie on one line. The twin's
// elements have lines of their own.
//
// SIZE: thousands of values a thread.
//
//: kind = "sharing"
//: names = ["partials", "accumulate", "make_partials"]
//: reach = "inside"
//: traced = 300
//: measured = 10000
#include "../planted.h"

#include <vector>

struct Partial {
    ALONE volatile uint64_t sum;
    volatile uint64_t count;
};

static std::vector<Partial> *partials;

HOT void make_partials(unsigned threads) {
    partials = new std::vector<Partial>();
    partials->reserve(threads);
    for (unsigned i = 0; i < threads; i++)
        partials->push_back(Partial{0, 0});
}

HOT void accumulate(unsigned self, uint64_t times) {
    Partial &mine = (*partials)[self];
    for (uint64_t i = 0; i < times; i++) {
        mine.sum = mine.sum + (mix(i + self) & 255);
        mine.count = mine.count + 1;
    }
}

int main(int argc, char **argv) {
    uint64_t times = argument(argc, argv, 1, 1 << 30) * 1000, digest = 0;
    make_partials(2);
    uint64_t begun = now_ns();
    on_threads(2, accumulate, times);
    for (const Partial &p : *partials)
        digest = mix(digest + p.sum + p.count);
    return report(digest, begun);
}
