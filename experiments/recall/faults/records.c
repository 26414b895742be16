/* SPDX-License-Identifier: MIT OR Apache-2.0
 *
 * Columns of records, each column in a large malloc block, joined record by record. Records of one index lie in one set
 * of the first level, and a line has but two or four records, so the walk is soon at the next set. The twin begins each
 * column a line later than the one before.
 *
 * SIZE: millions of records read. SHAPE: number of columns, bytes of a record.
 *
 *: kind = "crowd"
 *: names = ["join"]
 *: reach = "outside"
 *: traced = 3
 *: measured = 100
 *: [[case]]
 *: shape = [14, 16]
 *: pieces = 14
 *: [[case]]
 *: shape = [22, 16]
 *: pieces = 22
 *: [[case]]
 *: shape = [26, 32]
 *: pieces = 26
 *: [[case]]
 *: shape = [32, 32]
 *: pieces = 32
 */
#include "../planted.h"

enum { MOST_COLUMNS = 64, BLOCK_BYTES = 160 << 10, COLUMN_BYTES = 32 << 10 };

static char *column[MOST_COLUMNS];

HOT uint64_t join(uint64_t columns, uint64_t record_bytes) {
    uint64_t sum = 0;
    for (uint64_t at = 0; at < COLUMN_BYTES; at += record_bytes)
        for (uint64_t c = 0; c < columns; c++) {
            const uint64_t *record = (const uint64_t *)(column[c] + at);
            sum += record[0] ^ record[1];
        }
    return sum;
}

int main(int argc, char **argv) {
    uint64_t reads = argument(argc, argv, 1, 1 << 20) * 1000000, sum = 0;
    uint64_t columns = argument(argc, argv, 2, MOST_COLUMNS), record_bytes = argument(argc, argv, 3, LINE);
    if (record_bytes % 16 != 0)
        planted_fail("a record has a multiple of 16 bytes");
    for (uint64_t c = 0; c < columns; c++) {
        char *begin = malloc(BLOCK_BYTES);
        if (!begin)
            planted_fail("not enough memory for that size");
        column[c] = begin + (TWINNED ? c * LINE : 0);
        for (uint64_t at = 0; at < COLUMN_BYTES; at += 8)
            *(uint64_t *)(column[c] + at) = mix(c * COLUMN_BYTES + at);
    }
    uint64_t begun = now_ns();
    for (uint64_t round = 0; round < reads * record_bytes / (columns * COLUMN_BYTES); round++)
        sum = mix(sum + join(columns, record_bytes));
    return report(sum, begun);
}
