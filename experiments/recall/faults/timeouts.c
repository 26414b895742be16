/* SPDX-License-Identifier: MIT OR Apache-2.0
 *
 * The peers of a proxy in a linked list, which is walked in each tick to find those that were silent for too long. A
 * peer begins with its deadline, has its open requests in the middle, and ends with the link. Between them lie buffers
 * that the walk does not read: a visit fetches three lines, and the list is more than the first level holds. The twin's
 * peer begins with the three fields.
 *
 * SIZE: ticks.
 *
 *: half = "third"
 *: kind = "layout"
 *: names = ["expire", "peer", "add_peers", "deadline"]
 *: reach = "inside"
 *: traced = 400000
 *: measured = 400000
 */
#include "../planted.h"

enum { PEERS = 420 };

struct peer {
#ifdef TWIN
    uint64_t deadline, requests;
    struct peer *next;
    char name[64], header[96], sent[120];
#else
    uint64_t deadline;
    char name[64], header[96];
    uint64_t requests;
    char sent[120];
    struct peer *next;
#endif
};

/* Peers come and go, so that the list runs through the heap in no order. */
HOT struct peer *add_peers(void) {
    static struct peer *peer[PEERS];
    for (uint64_t i = 0; i < PEERS; i++) {
        if (!(peer[i] = calloc(1, sizeof *peer[i])))
            planted_fail("not enough memory");
        uint64_t other = mix(i + 1) % (i + 1);
        struct peer *swapped = peer[i];
        peer[i] = peer[other];
        peer[other] = swapped;
    }
    for (uint64_t i = 0; i < PEERS; i++) {
        peer[i]->requests = 1 + i % 3;
        peer[i]->deadline = 100 + i % 400;
        peer[i]->next = i + 1 < PEERS ? peer[i + 1] : NULL;
    }
    return peer[0];
}

HOT uint64_t expire(struct peer *first, uint64_t now) {
    uint64_t expired = 0;
    for (struct peer *at = first; at; at = at->next)
        if (at->requests && at->deadline <= now) {
            expired += at->requests++;
            at->deadline = now + 300;
        }
    return expired;
}

int main(int argc, char **argv) {
    uint64_t ticks = argument(argc, argv, 1, 1 << 30), digest = 0, begun = now_ns();
    struct peer *peers = add_peers();
    for (uint64_t now = 0; now < ticks; now++)
        digest = mix(digest + expire(peers, now));
    return report(digest, begun);
}
