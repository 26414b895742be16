/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Orders of 200 bytes, one malloc each, visited through a shuffled pointer array. Matching goes from an order
   to one of its two counterparts (by the quantity left); quantity, price and peer lie on three lines. As proposed for
   the twin, these lie in an array of their own. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#define NORDER 8192
static uint64_t seed = 1234;
static uint32_t rnd(void) { seed = seed * 6364136223846793005ull + 1442695040888963407ull; return seed >> 33; }
#if defined FIXED || defined PROPOSED
#define MATCHED_FIELDS int64_t quantity; double price; uint32_t peer[2]
#ifdef PROPOSED
static struct matched { MATCHED_FIELDS; } matched[NORDER];
#endif
struct order {
#ifdef FIXED
    MATCHED_FIELDS;
#endif
    char client[40];
    char symbol[16];
    uint64_t created;
    char route[32];
    double fee, tax;
    char note[40];
    uint64_t parent, account, seq;
};
#else
struct order {
    int64_t quantity;
    char client[40];
    char symbol[16];
    uint64_t created;
    double price;              /* offset 72 */
    char route[32];
    double fee, tax;
    char note[40];
    uint32_t peer[2];          /* offset 168 */
    uint64_t parent, account, seq;
};
#endif
#ifndef PROPOSED
#define matched order
#define MATCHED(order, seq) (order)
_Static_assert(sizeof(struct order) == 200, "size");
#else
#define MATCHED(order, seq) (&matched[seq])
#endif
__attribute__((noinline)) static struct order *order_new(uint64_t seq)
{
    struct order *o = malloc(sizeof *o);
    memset(o, 0, sizeof *o);
    struct matched *m = MATCHED(o, seq);
    o->seq = seq; m->quantity = 1 + rnd() % 500; m->price = 10 + (rnd() % 1000) * 0.25;
    m->peer[0] = rnd() % NORDER; m->peer[1] = rnd() % NORDER; o->fee = 0.1; o->account = rnd() % 1000;
    memcpy(o->symbol, "ABC", 4); memcpy(o->client, "client", 7);
    return o;
}
__attribute__((noinline)) static double match(struct matched *const *book, uint32_t at, int steps)
{
    double turnover = 0;
    for (int s = 0; s < steps; s++) {
        struct matched *o = book[at];
        int64_t q = o->quantity;
        o->quantity = q > 16 ? q - 7 : q + 483;
        turnover += 7 * o->price;
        at = o->peer[(q >> 2) & 1];
    }
    return turnover;
}
__attribute__((noinline)) static uint64_t audit(struct order *const *book, int n)
{
    uint64_t a = 0;
    for (int i = 0; i < n; i++) a += book[i]->account * 31 + book[i]->seq ;
    return a;
}
int main(int argc, char **argv)
{
    int rounds = argc > 1 ? atoi(argv[1]) : 120;
    struct order **book = malloc(NORDER * sizeof *book);
    for (int i = 0; i < NORDER; i++) book[i] = order_new(i);
    for (int i = NORDER - 1; i > 0; i--) { int j = rnd() % (i + 1); struct order *t = book[i]; book[i] = book[j]; book[j] = t; }
#ifdef PROPOSED
    static struct matched *to_match[NORDER];
    for (int i = 0; i < NORDER; i++) to_match[i] = &matched[book[i]->seq];
#else
    struct order **to_match = book;
#endif
    double v = 0;
    for (int r = 0; r < rounds; r++) { uint32_t at = rnd() % NORDER; v += match(to_match, at, 25000); }
    printf("%.2f %llu\n", v, (unsigned long long)audit(book, NORDER));
    return 0;
}
