/* SPDX-License-Identifier: MIT OR Apache-2.0
 *
 * Healthy: a join probes 8 MiB of pairs, one partition of 128 KiB after another. The reads of a partition come in no
 * order, but a CPU holds the translations of its 32 pages.
 * SIZE: thousands of reads for each partition. */
#include "../planted.h"

enum { PARTITIONS = 64, PAIRS = 8192 };

struct pair {
    uint64_t key, value;
};

HOT uint64_t probe(const struct pair *partition, uint64_t reads) {
    uint64_t sum = 0;
    for (uint64_t i = 0; i < reads; i++)
        sum += partition[mix(sum + i) % PAIRS].value;
    return sum;
}

int main(int argc, char **argv) {
    uint64_t reads = argument(argc, argv, 1, 1 << 20) * 1000, digest = 0, begun = now_ns();
    struct pair *table = malloc((size_t)PARTITIONS * PAIRS * sizeof *table);
    if (!table)
        planted_fail("not enough memory");
    for (uint64_t i = 0; i < PARTITIONS * PAIRS; i++)
        table[i] = (struct pair){i, mix(i)};
    for (uint64_t i = 0; i < PARTITIONS; i++)
        digest = mix(digest + probe(table + i * PAIRS, reads));
    return report(digest, begun);
}
