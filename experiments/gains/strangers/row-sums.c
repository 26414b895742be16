/* SPDX-License-Identifier: MIT OR Apache-2.0
 *
 * Projection profile of an image of 160 rows of 512 32-bit pixels (2 KiB a row,
 * 320 KiB in all): every column is summed from top to bottom. */
#include <stdio.h>
#include <stdlib.h>
#include <stdint.h>
#include <string.h>
#define ROWS 160
#define COLS 512
#ifdef TWIN
#define ROW (COLS + 16)
#else
#define ROW COLS
#endif
static uint32_t profile[COLS];

static __attribute__((noinline)) void project(const uint32_t *img, long rows, long cols, uint32_t bias)
{
    for (long c = 0; c < cols; c++) {
        const uint32_t *p = img + c;
        uint32_t s = bias;
        for (long r = 0; r < rows; r++, p += ROW)
            s += *p;
        profile[c] ^= s;
    }
}

int main(int argc, char **argv)
{
    long rounds = argc > 1 ? atol(argv[1]) : 4000;
    size_t bytes = ((size_t)ROWS * ROW * 4 + 4095) & ~(size_t)4095;
    uint32_t *img = aligned_alloc(4096, bytes);
    if (!img) return 1;
    memset(img, 0, bytes);
    uint32_t r = 5;
    for (int i = 0; i < ROWS; i++)
        for (int j = 0; j < COLS; j++) { r = r * 1664525u + 1013904223u; img[(size_t)i * ROW + j] = r >> 8; }
    for (long t = 0; t < rounds; t++)
        project(img, ROWS, COLS, (uint32_t)t);
    uint64_t s = 0;
    for (int i = 0; i < COLS; i++) s = s * 31 + profile[i];
    printf("%016llx\n", (unsigned long long)s);
    free(img);
    return 0;
}
