/* SPDX-License-Identifier: MIT OR Apache-2.0
 *
 * Per-column mean and spread of a table of 1024 rows of 1024 32-bit values
 * (4 KiB a row, 4 MiB in all), read column by column. */
#include <stdio.h>
#include <stdlib.h>
#include <stdint.h>
#include <string.h>
#define ROWS 1024
#define COLS 1024
#ifdef TWIN
#define ROW (COLS + 16)
#else
#define ROW COLS
#endif
static uint64_t sum[COLS], sq[COLS];

static __attribute__((noinline)) void stats(const uint32_t *tab, long rows, long cols, uint64_t shift)
{
    for (long c = 0; c < cols; c++) {
        const uint32_t *p = tab + c;
        uint64_t s = 0, q = 0;
        for (long r = 0; r < rows; r++, p += ROW) {
            uint64_t v = *p + shift;
            s += v;
            q += v * v;
        }
        sum[c] += s;
        sq[c] ^= q;
    }
}

int main(int argc, char **argv)
{
    long rounds = argc > 1 ? atol(argv[1]) : 70;
    size_t bytes = ((size_t)ROWS * ROW * 4 + 4095) & ~(size_t)4095;
    uint32_t *tab = aligned_alloc(4096, bytes);
    if (!tab) return 1;
    memset(tab, 0, bytes);
    uint32_t r = 6;
    for (int i = 0; i < ROWS; i++)
        for (int j = 0; j < COLS; j++) { r = r * 1664525u + 1013904223u; tab[(size_t)i * ROW + j] = r >> 12; }
    for (long t = 0; t < rounds; t++)
        stats(tab, ROWS, COLS, (uint64_t)t);
    uint64_t s = 0;
    for (int i = 0; i < COLS; i++) s = s * 31 + sum[i] + (sq[i] >> 3);
    printf("%016llx\n", (unsigned long long)s);
    free(tab);
    return 0;
}
