/* Name cache of a resolver: first replays yesterday's query log (text) for the
 * statistics, then answers from a chained hash table of recent names. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define REPLAY 14000000
#define NAMES 20000
#define BUCKETS 32768u
#define QUERIES 90000000

struct entry {
    uint64_t key;
    char name[120];
    struct entry *next;
    char address[40];
    uint32_t expires;
    char server[76];
    uint32_t hits;
    uint32_t renewed;
    char note[56];
};

static struct entry *bucket[BUCKETS];

static uint64_t rs = 0x853C49E6748FEA9Bull;
static inline uint32_t rnd(void) {
    rs ^= rs << 13; rs ^= rs >> 7; rs ^= rs << 17;
    return (uint32_t)(rs >> 24);
}

static char *put(char *p, uint32_t v) {
    char t[12];
    int n = 0;
    do t[n++] = (char)('0' + v % 10); while (v /= 10);
    while (n) *p++ = t[--n];
    return p;
}

static uint32_t get(const char **p) {
    uint32_t v = 0;
    while (**p >= '0' && **p <= '9') v = v * 10 + (uint32_t)(*(*p)++ - '0');
    (*p)++;
    return v;
}

/* Log lines "time,milliseconds,client" by hour. */
static uint64_t replay(void) {
    static uint64_t hour[24];
    static char text[65536];
    for (int done = 0; done < REPLAY;) {
        char *p = text;
        int n = 0;
        while (p < text + sizeof text - 64 && done + n < REPLAY) {
            p = put(p, rnd() % 86400);
            *p++ = ',';
            p = put(p, rnd() % 480 + 15);
            *p++ = ',';
            p = put(p, rnd() % 3000);
            *p++ = '\n';
            n++;
        }
        const char *q = text;
        for (int i = 0; i < n; i++) {
            uint32_t time = get(&q), took = get(&q), client = get(&q);
            hour[time / 3600] += took + client;
        }
        done += n;
    }
    uint64_t h = 0;
    for (int i = 0; i < 24; i++) h = h * 31 + hour[i];
    return h;
}

static inline uint64_t key_of(uint32_t i) {
    uint64_t k = (i + 1) * 0x9E3779B97F4A7C15ull;
    return k ^ k >> 31;
}

static struct entry *fill(void) {
    struct entry *pool = aligned_alloc(64, NAMES * sizeof *pool);
    if (!pool) abort();
    memset(pool, 0, NAMES * sizeof *pool);
    for (uint32_t i = 0; i < NAMES; i++) {
        struct entry *e = &pool[i];
        e->key = key_of(i);
        e->expires = rnd() % 100000 + 1000;
        snprintf(e->name, sizeof e->name, "host%u.example.net", i);
        snprintf(e->address, sizeof e->address, "10.%u.%u.%u", i >> 16, i >> 8 & 255, i & 255);
        snprintf(e->server, sizeof e->server, "ns%u.example.net", i % 13);
        struct entry **b = &bucket[e->key & (BUCKETS - 1)];
        e->next = *b;
        *b = e;
    }
    return pool;
}

static inline uint32_t lookup(uint64_t key, uint32_t now) {
    struct entry *e = bucket[key & (BUCKETS - 1)];
    while (e && e->key != key) e = e->next;
    if (!e) return 0;
    if (e->expires <= now) {
        e->expires = now + 60000;
        e->renewed++;
    }
    return ++e->hits;
}

int main(void) {
    uint64_t sum = replay();
    struct entry *pool = fill();
    for (uint32_t q = 0; q < QUERIES; q++)
        sum = sum * 31 + lookup(key_of((uint32_t)((uint64_t)rnd() * (NAMES + NAMES / 16) >> 32)), q / 4000);
    for (uint32_t i = 0; i < NAMES; i++) sum = sum * 31 + pool[i].renewed;
    printf("%llu\n", (unsigned long long)sum);
    free(pool);
    return 0;
}
