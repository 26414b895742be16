/* SPDX-License-Identifier: MIT OR Apache-2.0
 *
 * A ring of tickets between two threads. The producer writes `head` with each ticket and the consumer writes `tail`
 * with each ticket; both indexes lie on one line. The twin's indexes have lines of their own. A ticket is its number
 * alone, and each thread looks at the other thread's index once in a thousand tickets: nothing else changes hands.
 *
 * SIZE: thousands of tickets.
 *
 *: kind = "sharing"
 *: names = ["ring", "produce", "consume"]
 *: reach = "inside"
 *: traced = 300
 *: measured = 6000
 */
#include "../planted.h"

enum { SLOTS = 1 << 16, BATCH = 1 << 10, STEPS = 4 };

static struct {
    alignas(2 * LINE) uint64_t head;
    ALONE uint64_t tail;
} ring;

static struct {
    alignas(2 * LINE) uint64_t sum;
} side[2];

static uint64_t think(uint64_t x) {
    for (int i = 0; i < STEPS; i++)
        x = mix(x);
    return x;
}

/* Waits until the index is at least `wanted`. */
static void await(const uint64_t *index, uint64_t wanted) {
    while (__atomic_load_n(index, __ATOMIC_ACQUIRE) < wanted)
        sched_yield();
}

HOT void produce(uint64_t tickets) {
    uint64_t sum = 0;
    for (uint64_t head = 0; head < tickets; head++) {
        if (head % BATCH == 0 && head >= SLOTS)
            await(&ring.tail, head + BATCH - SLOTS);
        sum = think(sum + head);
        __atomic_store_n(&ring.head, head + 1, __ATOMIC_RELEASE);
    }
    side[0].sum = sum;
}

HOT void consume(uint64_t tickets) {
    uint64_t sum = 0;
    for (uint64_t tail = 0; tail < tickets; tail++) {
        if (tail % BATCH == 0)
            await(&ring.head, tail + BATCH < tickets ? tail + BATCH : tickets);
        sum = think(sum ^ tail);
        __atomic_store_n(&ring.tail, tail + 1, __ATOMIC_RELEASE);
    }
    side[1].sum = sum;
}

static void work(unsigned self, uint64_t tickets) { self == 0 ? produce(tickets) : consume(tickets); }

int main(int argc, char **argv) {
    uint64_t tickets = argument(argc, argv, 1, 1 << 30) * 1000;
    uint64_t begun = now_ns();
    on_threads(2, work, tickets);
    return report(side[0].sum + mix(side[1].sum), begun);
}
