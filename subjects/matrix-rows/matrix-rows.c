/* SPDX-License-Identifier: MIT OR Apache-2.0
 *
 * A matrix with rows of a power of two of bytes, added up column by column: a column's elements share a few cache sets.
 * --pad adds bytes to each row, which is the cure. */
#include "subject.h"

static __attribute__((noinline)) uint64_t add_columns(const char *matrix, uint64_t rows, uint64_t columns, uint64_t row_bytes) {
    uint64_t sum = 0;
    for (uint64_t column = 0; column < columns; column++)
        for (uint64_t row = 0; row < rows; row++)
            sum += *(const volatile uint64_t *)(matrix + row * row_bytes + column * sizeof(uint64_t));
    return sum;
}

int main(int argc, char **argv) {
    uint64_t rows = 128, columns = 512, pad = 0, rounds = 40;
    const struct subject_option options[] = {
        {"rows", "of the matrix", &rows, 0},
        {"columns", "of 8 bytes", &columns, 0},
        {"pad", "bytes added to each row, a multiple of 8", &pad, 0},
        {"rounds", "times that it is added up", &rounds, 0},
        {0},
    };
    subject_options(argc, argv, "Adds up a matrix by columns; its rows are a power of two apart.", options);
    if (rows < 1 || columns < 1 || rounds < 1 || pad % 8)
        subject_fail(argv[0], "--rows, --columns and --rounds are at least 1, --pad a multiple of 8");
    uint64_t row_bytes = columns * sizeof(uint64_t) + pad, sum = 0, expected = 0;
    char *matrix = malloc(rows * row_bytes);
    if (!matrix)
        subject_fail(argv[0], "not enough memory for that size");
    for (uint64_t row = 0; row < rows; row++)
        for (uint64_t column = 0; column < columns; column++)
            expected += *(uint64_t *)(matrix + row * row_bytes + column * sizeof(uint64_t)) = row ^ column;
    double from = subject_now_ns();
    for (uint64_t round = 0; round < rounds; round++)
        sum += add_columns(matrix, rows, columns, row_bytes);
    double ns = (subject_now_ns() - from) / (double)(rounds * rows * columns);
    printf("matrix-rows: rows %llu, row_bytes %llu, ns_per_element %.3f\n", (unsigned long long)rows,
           (unsigned long long)row_bytes, ns);
    return sum != expected * rounds;
}
