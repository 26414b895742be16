/* SPDX-License-Identifier: MIT OR Apache-2.0
 *
 * Spectral probe: a message names a pixel; its value is read from twenty image
 * planes of 8 KiB each and weighed.  The pixel's address comes from the message,
 * outside the plane loop.  The twin pads every plane by 13 lines. */
#include <stdio.h>
#include <stdlib.h>
#include <stdint.h>
#include <string.h>
#define PLANES 20
#ifdef TWIN
#define PSTRIDE (8192 + 13 * 64)
#else
#define PSTRIDE 8192
#endif
#define MSGS 1024
static uint32_t msg[MSGS];
static uint32_t weight[PLANES];

static __attribute__((noinline)) uint64_t probe(const char *img, long nmsg, long np, uint64_t acc)
{
    for (long k = 0; k < nmsg; k++) {
        uint32_t m = msg[k];
        uint32_t line = (m >> 9) & 15, col = (m >> 3) & 31, bias = m & 7;
        const char *p = img + 1024 + line * 64 + col * 2;
        for (long b = 0; b < np; b++, p += PSTRIDE) {
            uint32_t v = *(const uint16_t *)p * weight[b] + bias;
            v ^= v >> 5;
            acc += (v * v) >> 8;
        }
    }
    return acc;
}

int main(int argc, char **argv)
{
    long rounds = argc > 1 ? atol(argv[1]) : 17000;
    size_t bytes = ((size_t)PLANES * PSTRIDE + 4095) & ~(size_t)4095;
    char *img = aligned_alloc(4096, bytes);
    if (!img) return 1;
    memset(img, 0, bytes);
    uint32_t r = 4242;
    for (int b = 0; b < PLANES; b++) {
        for (int i = 0; i < 4096; i++) {
            r = r * 1664525u + 1013904223u;
            ((uint16_t *)(img + (size_t)b * PSTRIDE))[i] = (uint16_t)(r >> 20);
        }
        weight[b] = 3 + b * 5;
    }
    for (int i = 0; i < MSGS; i++) { r = r * 1664525u + 1013904223u; msg[i] = r >> 16; }
    uint64_t acc = 0;
    for (long t = 0; t < rounds; t++) {
        acc = probe(img, MSGS, PLANES, acc * 5 + 1);
        msg[t & (MSGS - 1)] ^= (uint32_t)acc & 0xff8;
    }
    printf("%016llx\n", (unsigned long long)acc);
    free(img);
    return 0;
}
