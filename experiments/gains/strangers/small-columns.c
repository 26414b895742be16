/* SPDX-License-Identifier: MIT OR Apache-2.0
 *
 * Transposed matrix-vector product of a 64x64 matrix of 8-byte words, column by
 * column: 32 KiB, eight lines of each column per set, so all of it stays in L1. */
#include <stdio.h>
#include <stdlib.h>
#include <stdint.h>
#include <string.h>
#define D 64
#ifdef TWIN
#define ROW (D + 8)
#else
#define ROW D
#endif
static _Alignas(4096) uint64_t m[D * ROW];
static _Alignas(64) uint64_t x[D], y[D];

static __attribute__((noinline)) void tmul(long d)
{
    for (long c = 0; c < d; c++) {
        uint64_t s = 0;
        const uint64_t *p = m + c;
        for (long r = 0; r < d; r++, p += ROW)
            s += *p * x[r];
        y[c] = s;
    }
}

int main(int argc, char **argv)
{
    long rounds = argc > 1 ? atol(argv[1]) : 220000;
    uint64_t r = 88172645463325252ull;
    for (int i = 0; i < D; i++)
        for (int j = 0; j < D; j++) { r ^= r << 13; r ^= r >> 7; r ^= r << 17; m[i * ROW + j] = r >> 40; }
    for (int i = 0; i < D; i++) x[i] = i + 1;
    for (long t = 0; t < rounds; t++) {
        tmul(D);
        for (int i = 0; i < D; i++) x[i] = (y[i] >> 16) | 1;
    }
    uint64_t s = 0;
    for (int i = 0; i < D; i++) s = s * 31 + x[i];
    printf("%016llx\n", (unsigned long long)s);
    return 0;
}
