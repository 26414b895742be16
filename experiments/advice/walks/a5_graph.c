/* Ranking on a graph with linked cells for its edges. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#define V 60000u
#define DEGREE 12u
#define E (V * DEGREE)
#define SWEEPS 4

struct vertex;
struct cell {
    struct cell *next;
    struct vertex *to;
    uint32_t weight, kind;
};
struct vertex {
    struct cell *edges;
    uint32_t rank, fresh;
};

static uint64_t s = 2024;
static uint32_t rnd32(void)
{
    s ^= s << 13;
    s ^= s >> 7;
    s ^= s << 17;
    return (uint32_t)(s >> 16);
}

static uint32_t weight_of(uint32_t v)
{
    for (uint32_t r = 0; r < 80; r++)
        v = (v ^ (v >> 15)) * 0x2c1b3c6du + r;
    return v & 255;
}

__attribute__((noinline)) static void sweep_linked(struct vertex *v, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++) {
        uint32_t acc = 1;
        for (const struct cell *c = v[i].edges; c; c = c->next)
            acc += c->weight * (c->to->rank >> 4);
        v[i].fresh = acc;
    }
    for (uint32_t i = 0; i < n; i++)
        v[i].rank = v[i].fresh;
}

int main(void)
{
    struct vertex *v = calloc(V, sizeof *v);
    struct cell *cells = malloc((size_t)E * sizeof *cells);
    for (uint32_t i = 0; i < V; i++)
        v[i].rank = i * 2654435761u;
    for (uint32_t k = 0; k < E; k++) { /* edges come in no order of their vertices */
        uint32_t from = rnd32() % V, to = rnd32() % V;
        cells[k].to = &v[to];
        cells[k].weight = weight_of(rnd32());
        cells[k].kind = k & 3;
        cells[k].next = v[from].edges;
        v[from].edges = &cells[k];
    }
    for (int k = 0; k < SWEEPS; k++)
        sweep_linked(v, V);
    uint64_t sum = 0;
    for (uint32_t i = 0; i < V; i++)
        sum = sum * 31 + v[i].rank;
    printf("%016llx\n", (unsigned long long)sum);
    return 0;
}
