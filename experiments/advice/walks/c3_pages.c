/* One line from the head of each 4 KiB page of a 64 MiB store, once; each is then digested. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#define PAGE 4096
#define PAGES (16u << 10)

static uint64_t digest(const uint64_t head[4])
{
    uint64_t a = head[0], b = head[1], c = head[2], d = head[3];
    for (int r = 0; r < 4000; r++) {
        a = (a ^ (b >> 7)) * 0x9e3779b97f4a7c15ull;
        b = (b + (c << 9)) ^ d;
        c = (c ^ a) + (uint64_t)r;
        d = (d << 13 | d >> 51) + b;
    }
    return a ^ b ^ c ^ d;
}

__attribute__((noinline)) static uint64_t scan_page_heads(const unsigned char *store)
{
    uint64_t sum = 0;
    for (size_t p = 0; p < PAGES; p++)
        sum += digest((const uint64_t *)(store + p * PAGE));
    return sum;
}

int main(void)
{
    unsigned char *store = aligned_alloc(PAGE, (size_t)PAGES * PAGE);
    for (size_t p = 0; p < PAGES; p++)
        for (int k = 0; k < 4; k++)
            ((uint64_t *)(store + p * PAGE))[k] = p * 0x2545f4914f6cdd1dull + (uint64_t)k;
    printf("%016llx\n", (unsigned long long)scan_page_heads(store));
    return 0;
}
