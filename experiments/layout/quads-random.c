/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Healthy: 64-byte aligned records, all members used at each (random) visit. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#define NREC 49152
static uint64_t seed = 8;
static uint32_t rnd(void) { seed = seed * 6364136223846793005ull + 1442695040888963407ull; return seed >> 33; }
struct bone { float rot[4], pos[4], scale[4], weight[3]; uint32_t parent; } __attribute__((aligned(64)));
static struct bone *bones;
__attribute__((noinline)) static float bone_eval(const struct bone *b, float t)
{
    float s = 0;
    for (int k = 0; k < 4; k++) s += b->rot[k] * t + b->pos[k] * b->scale[k];
    for (int k = 0; k < 3; k++) s += b->weight[k];
    return s + (float)(b->parent & 3);
}
__attribute__((noinline)) static double pose(const uint32_t *order, float t)
{
    double acc = 0;
    for (int i = 0; i < NREC; i++) acc += bone_eval(&bones[order[i]], t);
    return acc;
}
int main(int argc, char **argv)
{
    int rounds = argc > 1 ? atoi(argv[1]) : 200;
    bones = aligned_alloc(64, NREC * sizeof *bones);
    uint32_t *order = malloc(NREC * sizeof *order);
    for (int i = 0; i < NREC; i++) {
        for (int k = 0; k < 4; k++) { bones[i].rot[k] = rnd() % 8; bones[i].pos[k] = rnd() % 100; bones[i].scale[k] = 1; }
        for (int k = 0; k < 3; k++) bones[i].weight[k] = k;
        bones[i].parent = rnd(); order[i] = i;
    }
    for (int i = NREC - 1; i > 0; i--) { int j = rnd() % (i + 1); uint32_t t = order[i]; order[i] = order[j]; order[j] = t; }
    double sum = 0;
    for (int r = 0; r < rounds; r++) sum += pose(order, r * 0.25f);
    printf("%.3f\n", sum);
    return 0;
}
