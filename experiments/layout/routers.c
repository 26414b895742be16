/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Routers with an array of ports inside, each port with nested counters; the path choice reads the metric
   of each port only. Twin: the metrics of a router in one array at its head. As proposed for the twin, each router
   begins at a line. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#define NROUTER 8192
#define NPORT 6
#ifdef PROPOSED
#define FIXED
#define BEGIN _Alignas(64)
#else
#define BEGIN
#endif
static uint64_t seed = 4711;
static uint32_t rnd(void) { seed = seed * 6364136223846793005ull + 1442695040888963407ull; return seed >> 33; }
struct counters { uint64_t rx, tx, errors, drops; };
struct port {
    char ifname[16];
    struct counters count;
#ifndef FIXED
    uint32_t metric;
    uint32_t peer;
#endif
    uint32_t mtu, speed;
};
struct router {
#ifdef FIXED
    BEGIN struct { uint32_t metric[NPORT], peer[NPORT]; } choice;
#endif
    uint32_t id, area;
    char hostname[24];
    struct port ports[NPORT];
    uint64_t uptime;
};
#ifdef FIXED
#define METRIC(r, k) (r)->choice.metric[k]
#define PEER(r, k) (r)->choice.peer[k]
#else
#define METRIC(r, k) (r)->ports[k].metric
#define PEER(r, k) (r)->ports[k].peer
#endif
static struct router *net;
__attribute__((noinline)) static void router_setup(struct router *r, uint32_t id)
{
    memset(r, 0, sizeof *r);
    r->id = id; r->area = rnd() & 15; memcpy(r->hostname, "core", 5);
    for (int k = 0; k < NPORT; k++) {
        memcpy(r->ports[k].ifname, "eth", 4);
        METRIC(r, k) = 1 + rnd() % 1000; PEER(r, k) = rnd() % NROUTER;
        r->ports[k].mtu = 1500; r->ports[k].count.rx = rnd();
    }
}
/* Decided by branches on both sides: the compiler would take conditional moves for the twin alone, and save the mispredicted
   branches, three quarters of what it then gains. */
__attribute__((noinline, optimize("no-if-conversion", "no-if-conversion2"))) static uint32_t best_port(const struct router *r, uint32_t salt)
{
    uint32_t best = 0, cost = ~0u;
    for (uint32_t k = 0; k < NPORT; k++) {
        uint32_t c = METRIC(r, k) ^ (salt & 1023);
        if (c < cost) { cost = c; best = k; }
    }
    return best;
}
__attribute__((noinline)) static uint64_t forward(uint32_t start, int hops)
{
    uint32_t at = start; uint64_t cost = 0;
    for (int h = 0; h < hops; h++) {
        const struct router *r = &net[at];
        uint32_t k = best_port(r, rnd());
        cost += METRIC(r, k);
        at = PEER(r, k);
    }
    return cost + at;
}
int main(int argc, char **argv)
{
    int rounds = argc > 1 ? atoi(argv[1]) : 100;
    net = aligned_alloc(64, NROUTER * ((sizeof *net + 63) / 64 * 64));
    for (uint32_t i = 0; i < NROUTER; i++) router_setup(&net[i], i);
    uint64_t total = 0;
    for (int r = 0; r < rounds; r++) total += forward(rnd() % NROUTER, 20000);
    printf("%llu %llu\n", (unsigned long long)total, (unsigned long long)net[17].ports[3].count.rx);
    return 0;
}
