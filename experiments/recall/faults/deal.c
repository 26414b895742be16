/* SPDX-License-Identifier: MIT OR Apache-2.0
 *
 * A shuffle deals records to partitions of 8 KiB in one static array, as many to each. All partitions are filled in
 * step, so the places that are written next lie in one set of the first level, and a line is gone before its four
 * records are written. All that misses is stores. The twin's partitions are a line longer.
 *
 * SIZE: thousands of records. SHAPE: number of partitions, a power of two.
 *
 *: half = "second"
 *: kind = "crowd"
 *: names = ["deal_records", "dealt_out"]
 *: reach = "inside"
 *: traced = 1400
 *: measured = 50000
 *: [[case]]
 *: shape = [32]
 *: pieces = 32
 *: [[case]]
 *: shape = [64]
 *: pieces = 64
 */
#include "../planted.h"

struct record {
    uint64_t key, value;
};

enum { MOST_PARTITIONS = 64, CAPACITY = 8192 / sizeof(struct record), STRIDE = CAPACITY + TWINNED * LINE / 16 };

static alignas(PAGE) struct record dealt_out[MOST_PARTITIONS * STRIDE];

/* One record to each partition, the order of the partitions drawn anew in each round. */
HOT uint64_t deal_records(uint64_t partitions, uint64_t seed) {
    for (uint64_t round = 0; round < CAPACITY; round++) {
        uint64_t draw = mix(seed + round) >> 16;
        for (uint64_t i = 0; i < partitions; i++) {
            struct record *to = &dealt_out[((i ^ draw) & (partitions - 1)) * STRIDE + round];
            to->key = draw + i;
            to->value = round;
        }
    }
    return dealt_out[seed % partitions * STRIDE + seed % CAPACITY].key;
}

int main(int argc, char **argv) {
    uint64_t records = argument(argc, argv, 1, 1 << 30) * 1000, digest = 0;
    uint64_t partitions = argument(argc, argv, 2, MOST_PARTITIONS);
    if (partitions & (partitions - 1))
        planted_fail("the number of partitions is a power of two");
    uint64_t begun = now_ns();
    for (uint64_t fill = 0; fill < records / (partitions * CAPACITY); fill++)
        digest = mix(digest + deal_records(partitions, mix(fill)));
    return report(digest, begun);
}
