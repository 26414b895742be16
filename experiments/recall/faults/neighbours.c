/* SPDX-License-Identifier: MIT OR Apache-2.0
 *
 * Two small malloc blocks on one line, one used by each of two threads. The twin requests blocks with lines of
 * their own.
 *
 * SIZE: thousands of requests a thread.
 *
 *: kind = "sharing"
 *: names = ["new_session", "serve"]
 *: reach = "outside"
 *: traced = 300
 *: measured = 10000
 */
#include "../planted.h"

struct session {
    volatile uint64_t requests, bytes;
};

static struct session *session[2];

HOT struct session *new_session(void) {
    struct session *s = TWINNED ? aligned_alloc(2 * LINE, 2 * LINE) : malloc(sizeof *s);
    if (!s)
        planted_fail("not enough memory");
    s->requests = s->bytes = 0;
    return s;
}

HOT void serve(unsigned self, uint64_t times) {
    struct session *mine = session[self];
    for (uint64_t i = 0; i < times; i++) {
        mine->bytes += mix(i + self) & 255;
        mine->requests++;
    }
}

int main(int argc, char **argv) {
    uint64_t times = argument(argc, argv, 1, 1 << 30) * 1000;
    session[1] = new_session();
    /* The allocator gives blocks one after the other; some two lie on one line. */
    do {
        session[0] = session[1];
        session[1] = new_session();
    } while (!TWINNED && (uintptr_t)session[0] / LINE != (uintptr_t)session[1] / LINE);
    uint64_t begun = now_ns();
    on_threads(2, serve, times);
    return report(mix(session[0]->bytes) + session[1]->bytes + session[0]->requests, begun);
}
