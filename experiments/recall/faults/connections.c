/* SPDX-License-Identifier: MIT OR Apache-2.0
 *
 * An event loop with malloc blocks of 4,080 bytes as connections. With what the allocator adds they lie exactly 4 KiB
 * apart, so the hot fields at the head of each lie in one set of the first level, or in two where a head crosses the
 * end of a line. Events come in random order. The twin's connections are a line longer.
 *
 * SIZE: thousands of events. SHAPE: number of connections.
 *
 *: half = "second"
 *: kind = "crowd"
 *: names = ["handle_event", "open_connection"]
 *: reach = "outside"
 *: traced = 270
 *: measured = 15000
 *: [[case]]
 *: shape = [24]
 *: pieces = 24
 *: [[case]]
 *: shape = [80]
 *: pieces = 80
 *: [[case]]
 *: shape = [250]
 *: pieces = 250
 */
#include "../planted.h"

enum { MOST_CONNECTIONS = 256, BLOCK_BYTES = 4080 + TWINNED * LINE };

struct connection {
    uint64_t events, received, deadline, window, state, owed;
    char buffer[];
};

static struct connection *table[MOST_CONNECTIONS];

HOT struct connection *open_connection(uint64_t n) {
    struct connection *c = malloc(BLOCK_BYTES);
    if (!c)
        planted_fail("not enough memory for that size");
    *c = (struct connection){.window = mix(n) & 65535, .deadline = n};
    c->buffer[0] = 0;
    return c;
}

HOT uint64_t handle_event(struct connection *c, uint64_t bytes) {
    c->events++;
    c->received += bytes;
    c->owed = c->window ^ c->state;
    c->state = c->received > c->deadline;
    return c->owed;
}

int main(int argc, char **argv) {
    uint64_t events = argument(argc, argv, 1, 1 << 30) * 1000, state = 1;
    uint64_t connections = argument(argc, argv, 2, MOST_CONNECTIONS), sum = 0;
    for (uint64_t n = 0; n < connections; n++)
        table[n] = open_connection(n);
    uint64_t begun = now_ns();
    for (uint64_t i = 0; i < events; i++) {
        state = state * 6364136223846793005u + 1442695040888963407u;
        uint64_t ready = (state >> 32) * connections >> 32;
        sum = sum * 3 + handle_event(table[ready], state >> 60);
    }
    return report(sum, begun);
}
