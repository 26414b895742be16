/* Flow accounting: a set-up phase compiles the filter rules; then packets are credited to flows.
   Counters lie in the flow record beside names and option bytes which are hardly used. */
#include <stdio.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
enum { FLOWS = 40000 };
#ifndef PKTS
#define PKTS 45000000
#endif
#ifndef SETUP
#define SETUP 500
#endif
struct counters { uint32_t pkts, bytes; };
struct flow {
    char name[40];
    struct counters c;
    unsigned char opts[200];
    uint64_t created;
};
static struct flow *flows;
#define C(i) (flows[i].c)
static uint32_t rules[4096];
static uint64_t compile_rules(void)
{
    uint64_t acc = 0;
    char t[48];
    for (int k = 0; k < SETUP; k++)
        for (int i = 0; i < 4096; i++) {
            int n = snprintf(t, sizeof t, "allow %d.%d.%d.%d/%d", i & 255, k, i >> 4 & 255, i * 3 & 255, i % 32);
            uint32_t h = 2166136261u;
            for (int j = 0; j < n; j++) h = (h ^ (unsigned char)t[j]) * 16777619u;
            rules[i] = h;
            acc += h;
        }
    return acc;
}
int main(void)
{
    uint64_t acc = compile_rules();
    flows = calloc(FLOWS, sizeof *flows);
    for (int i = 0; i < FLOWS; i++) { snprintf(flows[i].name, 40, "flow-%d", i); flows[i].created = i; }
    uint32_t x = 1;
    for (int p = 0; p < PKTS; p++) {
        x ^= x << 13; x ^= x >> 17; x ^= x << 5;
        uint32_t len = 40 + (x >> 22), r = rules[x & 4095];
        uint32_t f = (uint32_t)(((uint64_t)(x ^ (r & 0xff00)) * FLOWS) >> 32);
        C(f).pkts++;
        C(f).bytes += len;
        if (C(f).pkts & 64) acc += C(f).bytes;
        acc += len ^ (r & 15);
    }
    for (int i = 0; i < FLOWS; i++) acc = acc * 31 + C(i).pkts + C(i).bytes;
    printf("%lx %s\n", acc, flows[77].name);
    return 0;
}
