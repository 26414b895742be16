/* SPDX-License-Identifier: MIT OR Apache-2.0
 *
 * A structure on the heap with two hot fields: one thread adds to `received`, another thread adds to `sent`, and both
 * fields lie on one line. The twin's fields have lines of their own.
 *
 * SIZE: thousands of additions a thread.
 *
 *: kind = "sharing"
 *: names = ["link_state", "new_link", "receive", "transmit"]
 *: reach = "inside"
 *: traced = 300
 *: measured = 15000
 */
#include "../planted.h"

struct link_state {
    uint64_t address, mtu;
    ALONE volatile uint64_t received;
    ALONE volatile uint64_t sent;
};

static struct link_state *link_of_all;

HOT struct link_state *new_link(void) { return (struct link_state *)memory(2 * LINE, sizeof(struct link_state)); }

HOT void receive(uint64_t times) {
    for (uint64_t i = 0; i < times; i++)
        link_of_all->received += mix(i) & 7;
}

HOT void transmit(uint64_t times) {
    for (uint64_t i = 0; i < times; i++)
        link_of_all->sent += mix(i + 1) & 3;
}

static void work(unsigned self, uint64_t times) { self == 0 ? receive(times) : transmit(times); }

int main(int argc, char **argv) {
    uint64_t times = argument(argc, argv, 1, 1 << 30) * 1000;
    link_of_all = new_link();
    uint64_t begun = now_ns();
    on_threads(2, work, times);
    return report(mix(link_of_all->received) + link_of_all->sent, begun);
}
