/* Ranking on a graph with compressed rows for its edges. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#define V 60000u
#define DEGREE 12u
#define E (V * DEGREE)
#define SWEEPS 4

struct arc {
    uint32_t from, to, weight;
};
struct out {
    uint32_t to, weight;
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

__attribute__((noinline)) static void sweep_rows(const uint32_t *row, const struct out *out, uint32_t *rank, uint32_t *fresh, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++) {
        uint32_t acc = 1;
        for (uint32_t k = row[i]; k < row[i + 1]; k++)
            acc += out[k].weight * (rank[out[k].to] >> 4);
        fresh[i] = acc;
    }
    for (uint32_t i = 0; i < n; i++)
        rank[i] = fresh[i];
}

int main(void)
{
    uint32_t *rank = calloc(V, sizeof *rank), *fresh = calloc(V, sizeof *fresh);
    uint32_t *row = calloc(V + 2, sizeof *row);
    struct arc *arcs = malloc((size_t)E * sizeof *arcs);
    struct out *out = malloc((size_t)E * sizeof *out);
    for (uint32_t i = 0; i < V; i++)
        rank[i] = i * 2654435761u;
    for (uint32_t k = 0; k < E; k++) {
        arcs[k].from = rnd32() % V;
        arcs[k].to = rnd32() % V;
        arcs[k].weight = weight_of(rnd32());
        row[arcs[k].from + 2]++;
    }
    for (uint32_t i = 0; i < V; i++)
        row[i + 2] += row[i + 1];
    for (uint32_t k = 0; k < E; k++) {
        uint32_t at = row[arcs[k].from + 1]++;
        out[at].to = arcs[k].to;
        out[at].weight = arcs[k].weight;
    }
    for (int k = 0; k < SWEEPS; k++)
        sweep_rows(row, out, rank, fresh, V);
    uint64_t sum = 0;
    for (uint32_t i = 0; i < V; i++)
        sum = sum * 31 + rank[i];
    printf("%016llx\n", (unsigned long long)sum);
    return 0;
}
