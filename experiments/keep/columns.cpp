// SPDX-License-Identifier: MIT OR Apache-2.0
//
// A query over eight columns that grow row by row to 8 MiB each, and end together with the query: far more memory at the
// top of the heap than twice the largest block.
#include "work.h"
#include <vector>

namespace {

constexpr size_t COLUMNS = 8, ROWS = 1000000;

using Table = std::vector<std::vector<uint64_t>>;

void load(Table &table, uint64_t seed)
{
    for (size_t row = 0; row < ROWS; row++)
        for (size_t column = 0; column < COLUMNS; column++)
            table[column].push_back(seed + row * (column + 1));
}

uint64_t aggregate(const Table &table)
{
    uint64_t sum = 0;
    for (const auto &column : table)
        for (uint64_t value : column)
            sum = mix(sum + value);
    return sum;
}

} // namespace

int main(int argc, char **argv)
{
    size_t queries = amount_of_work(argc, argv, 3);
    uint64_t checksum = 0;
    Table kept(COLUMNS);
    for (size_t query = 0; query < queries; query++) {
        Table own(KEEPS ? 0 : COLUMNS);
        Table &table = KEEPS ? kept : own;
        for (auto &column : table)
            column.clear();
        load(table, query);
        checksum = mix(checksum + aggregate(table));
    }
    return print_checksum(checksum);
}
