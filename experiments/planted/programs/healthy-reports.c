/* Column store: loads the columns of a price table once, then runs reports
 * over them from front to back. */
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#define ROWS 7000000u
#define REPORTS 40

struct table { double *price, *discount; uint32_t *shop; };

static uint64_t rs = 0x9E3779B97F4A7C15ull;
static inline double unit(void) {
    rs ^= rs << 13; rs ^= rs >> 7; rs ^= rs << 17;
    return (double)(rs >> 11) / 9007199254740992.0;
}

static void load(struct table *t) {
    t->price = malloc(ROWS * sizeof *t->price);
    t->discount = malloc(ROWS * sizeof *t->discount);
    t->shop = malloc(ROWS * sizeof *t->shop);
    if (!t->price || !t->discount || !t->shop) abort();
    for (uint32_t i = 0; i < ROWS; i++) {
        t->price[i] = exp(3.0 + sqrt(-2.0 * log(unit() + 1e-12)) * cos(6.283185307179586 * unit()));
        t->discount[i] = pow(unit(), 3.0) * 0.5;
        t->shop[i] = (uint32_t)(unit() * 500.0);
    }
}

static double report(const struct table *t, double least, double *by_shop) {
    double total = 0;
    for (uint32_t i = 0; i < ROWS; i++) {
        double net = t->price[i] * (1.0 - t->discount[i]);
        if (net < least) continue;
        by_shop[t->shop[i]] += net;
        total += net;
    }
    return total;
}

int main(void) {
    struct table t;
    load(&t);
    static double by_shop[512];
    double sum = 0;
    for (int r = 0; r < REPORTS; r++) sum += report(&t, 5.0 + r, by_shop);
    for (int s = 0; s < 512; s++) sum += by_shop[s] * s;
    printf("%.6f\n", sum);
    return 0;
}
