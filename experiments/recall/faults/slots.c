/* SPDX-License-Identifier: MIT OR Apache-2.0
 *
 * One mapping cut into slots of 8 KiB, as a pool of connection buffers is. Each slot begins with a head of three lines,
 * and one thread looks at all heads, again and again. The twin's slots are three lines longer, so the heads spread.
 *
 * SIZE: thousands of heads read. SHAPE: number of slots.
 *
 *: kind = "crowd"
 *: names = ["poll_slots"]
 *: reach = "inside"
 *: traced = 1000
 *: measured = 20000
 *: [[case]]
 *: shape = [22]
 *: pieces = 22
 *: [[case]]
 *: shape = [40]
 *: pieces = 40
 *: [[case]]
 *: shape = [160]
 *: pieces = 160
 */
#include "../planted.h"

struct slot_head {
    uint64_t state, pad1[7];
    uint64_t deadline, pad2[7];
    uint64_t bytes, pad3[7];
};

enum { SLOT_BYTES = 8192 + TWINNED * (int)sizeof(struct slot_head), MOST_SLOTS = 512 };

static struct slot_head *head_of(char *pool, uint64_t n) { return (struct slot_head *)(pool + n * SLOT_BYTES); }

HOT uint64_t poll_slots(char *pool, uint64_t slots) {
    uint64_t ready = 0;
    for (uint64_t i = 0; i < slots; i++) {
        struct slot_head *head = head_of(pool, i);
        ready += head->deadline + (head->state ^ head->bytes);
        head->state++;
    }
    return ready;
}

int main(int argc, char **argv) {
    uint64_t visits = argument(argc, argv, 1, 1 << 30) * 1000, slots = argument(argc, argv, 2, MOST_SLOTS), sum = 0;
    char *pool = mapping(slots * SLOT_BYTES);
    for (uint64_t i = 0; i < slots; i++)
        head_of(pool, i)->deadline = mix(i);
    uint64_t begun = now_ns();
    for (uint64_t round = 0; round < visits / slots; round++)
        sum = mix(sum + poll_slots(pool, slots));
    return report(sum, begun);
}
