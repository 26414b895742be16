/* SPDX-License-Identifier: MIT OR Apache-2.0
 *
 * Events counted by key in an open-addressed hash table of 128 MiB. The keys come in no order, so nearly every event
 * touches another page, and pages of 4 KiB are far more than the CPU translates at once. The twin's table lies in pages
 * of 2 MiB.
 *
 * SIZE: thousands of events.
 *
 *: half = "third"
 *: kind = "huge"
 *: names = ["count_event", "new_table"]
 *: reach = "outside"
 *: traced = 12000
 *: measured = 12000
 */
#include "../planted.h"

enum { SLOTS = 1 << 23, KEYS = 2000000 };

struct slot {
    uint64_t key, events;
};

static struct slot *table;

HOT struct slot *new_table(void) { return (struct slot *)paged(SLOTS * sizeof(struct slot)); }

HOT uint64_t count_event(uint64_t key) {
    uint64_t at = mix(key) % SLOTS;
    while (table[at].key && table[at].key != key)
        at = (at + 1) % SLOTS;
    table[at].key = key;
    return ++table[at].events;
}

int main(int argc, char **argv) {
    uint64_t events = argument(argc, argv, 1, 1 << 30) * 1000, digest = 0;
    uint64_t begun = now_ns();
    table = new_table();
    for (uint64_t i = 0; i < events; i++)
        digest += count_event(1 + mix(i + 1) % KEYS);
    return report(mix(digest), begun);
}
