/* Order store of an exchange: a stream of fills and amendments hits the open
 * orders at random. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

struct order {
    uint32_t account;
    uint64_t id;
    uint32_t quantity;
    int64_t price;
    uint32_t filled;
    uint64_t entered;
    uint16_t side;
    uint64_t tag;
    uint32_t amended;
};

#define ORDERS 1000000u
#define MESSAGES 130000000u

static uint64_t rs = 0x9E3779B97F4A7C15ull;
static inline uint64_t rnd(void) {
    rs ^= rs << 13; rs ^= rs >> 7; rs ^= rs << 17;
    return rs;
}

static struct order *make_store(void) {
    size_t bytes = (ORDERS * sizeof(struct order) + (2u << 20) - 1) & ~(size_t)((2u << 20) - 1);
    struct order *o = aligned_alloc(2u << 20, bytes);
    if (!o) abort();
    madvise(o, bytes, MADV_HUGEPAGE);
    return o;
}

int main(void) {
    struct order *store = make_store();
    for (uint32_t i = 0; i < ORDERS; i++) {
        struct order *o = &store[i];
        memset(o, 0, sizeof *o);
        o->account = i % 700;
        o->id = i;
        o->quantity = 100 + i % 900;
        o->price = 10000 + i % 64;
        o->side = i & 1;
        o->tag = i * 31u;
    }
    uint64_t turnover = 0;
    for (uint32_t m = 0; m < MESSAGES; m++) {
        uint64_t r = rnd();
        struct order *o = &store[(uint32_t)((r >> 32) * ORDERS >> 32)];
        uint32_t lot = (uint32_t)r & 63;
        o->filled += lot;
        turnover += lot * (uint64_t)o->price + o->account + o->tag;
        o->amended += o->filled > o->quantity;
        o->entered += o->side + m;
    }
    uint64_t h = turnover;
    for (uint32_t i = 0; i < ORDERS; i++) {
        struct order *o = &store[i];
        h = h * 31 + o->filled + o->amended * 7 + o->entered + o->id;
    }
    printf("%llu\n", (unsigned long long)h);
    free(store);
    return 0;
}
