// SPDX-License-Identifier: MIT OR Apache-2.0
//
// Two threads copy one std::shared_ptr for every request: both count references in the same word, which is true
// sharing. Each thread of the twin copies a pointer to an object of its own.
//
// SIZE: thousands of requests a thread.
//
//: kind = "sharing"
//: split = false
//: names = ["load_config", "handle", "shared_ptr", "_M_release", "_Sp_counted"]
//: reach = "inside"
//: traced = 250
//: measured = 3000
#include "../planted.h"

#include <memory>

struct Config {
    uint64_t limit = 0;
    char text[8 * LINE] = {};
};

static std::shared_ptr<Config> config[2];

HOT std::shared_ptr<Config> load_config() {
    auto loaded = std::make_shared<Config>();
    loaded->limit = 1000;
    return loaded;
}

HOT uint64_t handle(std::shared_ptr<Config> current, uint64_t request) { return mix(request) % current->limit; }

static uint64_t result[2][2 * LINE];

static void work(unsigned self, uint64_t times) {
    const std::shared_ptr<Config> &current = config[TWINNED ? self : 0];
    uint64_t sum = 0;
    for (uint64_t i = 0; i < times; i++)
        sum = mix(sum + handle(current, i + self));
    result[self][LINE] = sum;
}

int main(int argc, char **argv) {
    uint64_t times = argument(argc, argv, 1, 1 << 30) * 1000;
    config[0] = load_config();
    config[1] = load_config();
    uint64_t begun = now_ns();
    on_threads(2, work, times);
    return report(result[0][LINE] + mix(result[1][LINE]), begun);
}
