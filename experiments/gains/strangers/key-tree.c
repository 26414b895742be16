/* SPDX-License-Identifier: MIT OR Apache-2.0
 *
 * Look-ups in a four-level tree of 85 pages of 4 KiB, fan-out four; keys and links
 * fill one line at the start of the page (one set).  Each result makes the next key.
 * The twin puts that line at a coloured offset in the same page. */
#include <stdio.h>
#include <stdlib.h>
#include <stdint.h>
#include <string.h>
#define PAGES 85
#ifdef TWIN
#define COLOUR(p) (((p) % 64) * 64)
#else
#define COLOUR(p) 0
#endif
#define AT(p) ((uint32_t)((p) * 4096 + COLOUR(p)))
struct page { uint32_t key[4]; uint32_t link[4]; };

static __attribute__((noinline)) uint64_t lookups(const char *t, long n, uint64_t x)
{
    for (long k = 0; k < n; k++) {
        uint32_t key = (uint32_t)(x >> 32), off = AT(0);
        for (int lvl = 0; lvl < 4; lvl++) {
            const struct page *p = (const struct page *)(t + off);
            unsigned i = (key >= p->key[0]) + (key >= p->key[1]) + (key >= p->key[2]);
            off = p->link[i];
        }
        x = (x ^ off) * 0x9E3779B97F4A7C15ull;      /* at the leaf the link is the value */
        x ^= x >> 29;
    }
    return x;
}

int main(int argc, char **argv)
{
    long rounds = argc > 1 ? atol(argv[1]) : 15000;
    char *t = aligned_alloc(4096, PAGES * 4096);
    if (!t) return 1;
    memset(t, 0, PAGES * 4096);
    /* page numbers level by level: 0 | 1..4 | 5..20 | 21..84 */
    uint32_t base[5] = { 0, 1, 5, 21, 85 };
    uint32_t r = 11;
    for (int lvl = 0; lvl < 4; lvl++) {
        uint32_t cnt = base[lvl + 1] - base[lvl];
        uint64_t span = (1ull << 32) / cnt;
        for (uint32_t i = 0; i < cnt; i++) {
            struct page *p = (struct page *)(t + AT(base[lvl] + i));
            for (uint32_t j = 0; j < 4; j++) {
                p->key[j] = (uint32_t)(span * i + span / 4 * (j + 1));
                if (lvl < 3) p->link[j] = AT(base[lvl + 1] + i * 4 + j);
                else { r = r * 1664525u + 1013904223u; p->link[j] = r; }
            }
        }
    }
    uint64_t x = 0x123456789abcdefull;
    for (long k = 0; k < rounds; k++)
        x = lookups(t, 1000, x);
    printf("%016llx\n", (unsigned long long)x);
    free(t);
    return 0;
}
