/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Healthy: a ledger read front to back, each member of each record used. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#define NPOST 65536
static uint64_t seed = 64;
static uint32_t rnd(void) { seed = seed * 6364136223846793005ull + 1442695040888963407ull; return seed >> 33; }
struct posting { uint64_t id; uint32_t debit, credit; int64_t amount; uint32_t currency, period; uint64_t text_hash; double rate; };
static struct posting *ledger;
__attribute__((noinline)) static uint64_t post_digest(const struct posting *p, uint64_t h)
{
    h = (h ^ p->id) * 0x9e3779b97f4a7c15ull;
    h ^= ((uint64_t)p->debit << 32) | p->credit;
    h += (uint64_t)p->amount + p->currency * 31 + p->period;
    return h ^ p->text_hash;
}
__attribute__((noinline)) static double book(uint64_t *h)
{
    double base = 0;
    for (int i = 0; i < NPOST; i++) {
        const struct posting *p = &ledger[i];
        *h = post_digest(p, *h);
        base += (double)p->amount * p->rate;
    }
    return base;
}
int main(int argc, char **argv)
{
    int rounds = argc > 1 ? atoi(argv[1]) : 600;
    ledger = malloc(NPOST * sizeof *ledger);
    for (int i = 0; i < NPOST; i++) {
        struct posting *p = &ledger[i];
        p->id = i; p->debit = rnd(); p->credit = rnd(); p->amount = (int64_t)(rnd() % 10000) - 5000;
        p->currency = rnd() & 15; p->period = rnd() % 12; p->text_hash = rnd(); p->rate = 1 + (rnd() & 7) * 0.125;
    }
    uint64_t h = 1; double base = 0;
    for (int r = 0; r < rounds; r++) base += book(&h);
    printf("%llx %.3f\n", (unsigned long long)h, base);
    return 0;
}
