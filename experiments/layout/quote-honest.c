/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Extra, honest case: quotes of 72 bytes (two holes of 4) in an array read at random by independent reads; nearly
   each read takes two lines, but the reads overlap, so the twin (64 bytes, aligned to 64) saves little. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#define NQUOTE 49152
static uint64_t seed = 11;
static uint32_t rnd(void) { seed = seed * 6364136223846793005ull + 1442695040888963407ull; return seed >> 33; }
#ifndef FIXED
struct quote {
    uint32_t venue;
    double bid, offer;
    double bid_size, offer_size;
    double last, open;
    uint64_t stamp;
    uint32_t flags;
};
_Static_assert(sizeof(struct quote) == 72, "size");
#else
struct quote {
    uint32_t venue;
    uint32_t flags;
    double bid, offer;
    double bid_size, offer_size;
    double last, open;
    uint64_t stamp;
} __attribute__((aligned(64)));
_Static_assert(sizeof(struct quote) == 64, "size");
#endif
static struct quote *book_new(size_t n)
{
#ifdef FIXED
    struct quote *q = aligned_alloc(64, n * sizeof *q);
#else
    struct quote *q = malloc(n * sizeof *q);
#endif
    for (size_t i = 0; i < n; i++) {
        q[i].venue = rnd() & 15; q[i].flags = rnd() & 3;
        q[i].bid = 100 + rnd() % 100; q[i].offer = q[i].bid + 1 + rnd() % 3;
        q[i].bid_size = 1 + rnd() % 50; q[i].offer_size = 1 + rnd() % 50;
        q[i].last = q[i].bid; q[i].open = q[i].bid - 2; q[i].stamp = i;
    }
    return q;
}
__attribute__((noinline)) static double micro_price(const struct quote *q, double skew)
{
    double p = (q->bid * q->offer_size + q->offer * q->bid_size) + (q->last - q->open) * skew;
    return p + (double)(int32_t)(q->venue + q->flags + (uint32_t)(q->stamp & 1));
}
__attribute__((noinline)) static double replay(const struct quote *book, const uint32_t *order, size_t n, double skew)
{
    double acc = 0;
    for (size_t i = 0; i < n; i++) acc += micro_price(&book[order[i]], skew);
    return acc;
}
int main(int argc, char **argv)
{
    int rounds = argc > 1 ? atoi(argv[1]) : 240;
    struct quote *book = book_new(NQUOTE);
    uint32_t *order = malloc(NQUOTE * sizeof *order);
    for (int i = 0; i < NQUOTE; i++) order[i] = i;
    for (int i = NQUOTE - 1; i > 0; i--) { int j = rnd() % (i + 1); uint32_t t = order[i]; order[i] = order[j]; order[j] = t; }
    double sum = 0;
    for (int r = 0; r < rounds; r++) sum += replay(book, order, NQUOTE, (r % 16) * 0.25);
    printf("%.3f\n", sum);
    return 0;
}
