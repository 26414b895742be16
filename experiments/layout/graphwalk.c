/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Road network: many bounded breadth-first searches from random places. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define N_VERT 120000u
#define DEGREE 8u
#define REACH  20000u
#define SEARCHES_PER_SEC 400.0

#ifdef FIXED
struct vertex {
    char     name[56];
    double   lat, lon;
    uint64_t osm_id;
    uint32_t kind;
    uint32_t speed;
    uint64_t region;
    char     tag[24];
};
struct visit {
    uint32_t first_edge;
    uint32_t degree;
    uint32_t mark;
    uint32_t dist;
};
static struct vertex *vert;
static struct visit *vis;
#define V(i) vis[i]
#else
struct vertex {
    uint32_t first_edge;
    uint32_t degree;
    char     name[56];
    double   lat, lon;
    uint64_t osm_id;
    uint32_t kind;
    uint32_t speed;
    uint64_t region;
    uint32_t mark;
    uint32_t dist;
    char     tag[40];
};
static struct vertex *vert;
#define V(i) vert[i]
#endif

static uint32_t *edge;
static uint32_t queue[REACH + DEGREE + 1];
static uint64_t rng = 88172645463325252ull;

static uint32_t below(uint32_t n)
{
    rng ^= rng << 13; rng ^= rng >> 7; rng ^= rng << 17;
    return (uint32_t)(((rng >> 32) * n) >> 32);
}

static void build(void)
{
    vert = calloc(N_VERT, sizeof *vert);
    edge = malloc(sizeof *edge * N_VERT * DEGREE);
#ifdef FIXED
    vis = calloc(N_VERT, sizeof *vis);
    if (!vis) exit(1);
#endif
    if (!vert || !edge) exit(1);
    for (uint32_t i = 0; i < N_VERT; i++) {
        V(i).first_edge = i * DEGREE;
        V(i).degree = 4 + below(DEGREE - 3);
        for (uint32_t k = 0; k < DEGREE; k++)
            edge[i * DEGREE + k] = below(N_VERT);
        snprintf(vert[i].name, sizeof vert[i].name, "junction %u", i);
        vert[i].lat = i * .001; vert[i].lon = i * .002;
        vert[i].osm_id = i * 13ull; vert[i].kind = i % 5;
        vert[i].speed = 30 + i % 90; vert[i].region = i / 1000;
        memset(vert[i].tag, 't', 8);
    }
}

static uint64_t toll(uint64_t h, uint32_t w)
{
    h += w;
    for (int k = 0; k < 24; k++) {
        h *= 0x9e3779b97f4a7c15ull;
        h ^= h >> 32;
    }
    return h;
}

static uint64_t search(uint32_t from, uint32_t round)
{
    uint32_t head = 0, tail = 0;
    uint64_t sum = 0, cost = 1;
    queue[tail++] = from;
    V(from).mark = round;
    V(from).dist = 0;
    while (head < tail && tail < REACH) {
        uint32_t v = queue[head++];
        uint32_t d = V(v).dist + 1;
        const uint32_t *e = &edge[V(v).first_edge];
        uint32_t deg = V(v).degree;
        for (uint32_t k = 0; k < deg; k++) {
            uint32_t w = e[k];
            if (V(w).mark != round) {
                V(w).mark = round;
                V(w).dist = d;
                queue[tail++] = w;
                cost = toll(cost, w);
            }
        }
        sum += d;
    }
    return sum + head + cost;
}

static uint64_t describe(uint32_t v)
{
    const struct vertex *p = &vert[v];
    return (uint64_t)p->name[9] + p->osm_id + p->kind + p->speed + p->region
         + (uint64_t)p->tag[1] + (uint64_t)(p->lat + p->lon);
}

int main(int argc, char **argv)
{
    double secs = argc > 1 ? atof(argv[1]) : 2;
    long n = (long)(secs * SEARCHES_PER_SEC);
    uint64_t sum = 0;
    build();
    printf("built %u vertices\n", N_VERT); fflush(stdout);
    for (long i = 1; i <= n; i++) {
        uint32_t from = below(N_VERT);
        sum = sum * 31 + search(from, (uint32_t)i) + describe(from);
    }
    printf("checksum %016llx\n", (unsigned long long)sum);
    return 0;
}
