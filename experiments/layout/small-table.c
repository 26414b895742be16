/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Healthy: 160 records of 120 bytes (19 KiB) of which two members are used: all stay in L1.
   -DFIXED: members apart, to show that it buys nothing. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#define NTASK 160
static uint64_t seed = 15;
static uint32_t rnd(void) { seed = seed * 6364136223846793005ull + 1442695040888963407ull; return seed >> 33; }
struct task {
#ifndef FIXED
    struct task *next;
#endif
    uint32_t prio;
    char name[48];
    uint64_t stats[6];
#ifndef FIXED
    uint32_t budget;
#endif
    uint32_t owner;
};
static struct task tasks[NTASK];
#ifdef FIXED
static struct hot { struct hot *next; uint32_t budget; } hot[NTASK];
#define RING hot
#else
#define RING tasks
#endif
__attribute__((noinline)) static uint64_t run_ring(int steps)
{
    __typeof__(RING[0]) *at = &RING[0]; uint64_t sum = 0;
    for (int s = 0; s < steps; s++) {
        at->budget = at->budget * 5 + 3;
        sum += at->budget >> 8;
        at = at->next;
    }
    return sum;
}
int main(int argc, char **argv)
{
    int rounds = argc > 1 ? atoi(argv[1]) : 500;
    uint32_t order[NTASK];
    for (int i = 0; i < NTASK; i++) { order[i] = i; tasks[i].prio = i & 7; RING[i].budget = rnd(); strcpy(tasks[i].name, "task"); }
    for (int i = NTASK - 1; i > 0; i--) { int j = rnd() % (i + 1); uint32_t t = order[i]; order[i] = order[j]; order[j] = t; }
    for (int i = 0; i < NTASK; i++) RING[order[i]].next = &RING[order[(i + 1) % NTASK]];
    uint64_t sum = 0;
    for (int r = 0; r < rounds; r++) sum += run_ring(NTASK * 500);
    printf("%llu %u\n", (unsigned long long)sum, tasks[5].prio);
    return 0;
}
