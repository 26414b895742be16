// A sparse matrix times a vector of 24 MB, three times: the columns of a row lie anywhere.
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

enum { ROWS = 3 << 20, FILLED = 400000, IN_A_ROW = 8, TIMES = 3 };

static uint32_t next_number(void)
{
    static uint64_t state = 7;
    state = state * 6364136223846793005ull + 1442695040888963407ull;
    return state >> 32;
}

static uint32_t column(uint32_t row)
{
    (void)row;
    return next_number() % ROWS;
}

__attribute__((noinline)) double multiply(const uint32_t *columns, const double *vector)
{
    double sum = 0;
    for (uint32_t row = 0; row < FILLED; row++)
        for (int at = 0; at < IN_A_ROW; at++)
            sum += vector[columns[row * IN_A_ROW + at]];
    return sum;
}

int main(void)
{
    uint32_t *columns = malloc(sizeof *columns * FILLED * IN_A_ROW);
    double *vector = malloc(sizeof *vector * ROWS);
    for (uint32_t row = 0; row < ROWS; row++)
        vector[row] = row % 5;
    for (uint32_t row = 0; row < FILLED; row++)
        for (int at = 0; at < IN_A_ROW; at++)
            columns[row * IN_A_ROW + at] = column(row);
    double sum = 0;
    for (int time = 0; time < TIMES; time++)
        sum += multiply(columns, vector);
    printf("%f\n", sum);
    free(vector);
    free(columns);
}
