/* SPDX-License-Identifier: MIT OR Apache-2.0
 *
 * Flow table: 320 records of 256 bytes; each packet adds its length to one
 * counter of its flow's hot line.  The hot line is the first of the record
 * (so only every fourth cache set is used); the twin colours it. */
#include <stdio.h>
#include <stdlib.h>
#include <stdint.h>
#include <string.h>
#define FLOWS 320
#define REC 256
#ifdef TWIN
#define COLOUR(id) (64u * (((id) >> 4) & 3))
#else
#define COLOUR(id) 0u
#endif
static uint32_t handle[FLOWS];
static uint32_t lens[64];

static __attribute__((noinline)) void burst(char *tab, uint32_t t)
{
    for (uint32_t i = 0; i < FLOWS; i++)
        *(uint64_t *)(tab + handle[i]) += lens[(i + t) & 63];
}

int main(int argc, char **argv)
{
    long rounds = argc > 1 ? atol(argv[1]) : 600000;
    char *tab = aligned_alloc(4096, FLOWS * REC);
    if (!tab) return 1;
    memset(tab, 0, FLOWS * REC);
    uint32_t r = 777, pos[FLOWS];
    for (uint32_t g = 0; g < FLOWS; g += 16) {      /* arrival order: mixed inside each group */
        uint32_t o[16];
        for (uint32_t i = 0; i < 16; i++) o[i] = g + i;
        for (uint32_t i = 15; i > 0; i--) {
            r = r * 1664525u + 1013904223u;
            uint32_t j = (r >> 16) % (i + 1), x = o[i];
            o[i] = o[j]; o[j] = x;
        }
        for (uint32_t i = 0; i < 16; i++) pos[g + i] = o[i];
    }
    for (uint32_t i = 0; i < FLOWS; i++) {
        uint32_t id = pos[i];
        handle[i] = id * REC + COLOUR(id) + 8 * ((id >> 4) & 7);
    }
    for (int i = 0; i < 64; i++) { r = r * 1664525u + 1013904223u; lens[i] = 64 + (r >> 20) % 1436; }
    for (long t = 0; t < rounds; t++)
        burst(tab, (uint32_t)t);
    uint64_t s = 0;
    for (uint32_t i = 0; i < FLOWS; i++)
        s = s * 31 + *(uint64_t *)(tab + handle[i]);
    printf("%016llx\n", (unsigned long long)s);
    free(tab);
    return 0;
}
