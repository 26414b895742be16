/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* ECS-like world in a static array. move_all uses pos/vel, regen_all uses hp/regen. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#define MAXENT 40000
static uint64_t seed = 77;
static uint32_t rnd(void) { seed = seed * 6364136223846793005ull + 1442695040888963407ull; return seed >> 33; }
struct entity {
#ifndef FIXED
    float pos, vel;
#endif
    char tag[24];
    uint32_t mesh, texture;
    float bounds[6];
    uint64_t parent;
#ifndef FIXED
    int32_t hp, regen;
#endif
    uint32_t inventory[6];
};
static struct entity entities[MAXENT];
#ifdef FIXED
static struct motion { float pos, vel; } motions[MAXENT];
static struct health { int32_t hp, regen; } healths[MAXENT];
#define POS(i) motions[i].pos
#define VEL(i) motions[i].vel
#define HP(i) healths[i].hp
#define REGEN(i) healths[i].regen
#else
#define POS(i) entities[i].pos
#define VEL(i) entities[i].vel
#define HP(i) entities[i].hp
#define REGEN(i) entities[i].regen
#endif
__attribute__((noinline)) static void spawn_all(void)
{
    for (int i = 0; i < MAXENT; i++) {
        struct entity *e = &entities[i];
        e->tag[0] = 'e'; e->mesh = rnd() & 63; e->texture = rnd() & 63; e->parent = rnd() % MAXENT;
        for (int k = 0; k < 6; k++) { e->bounds[k] = (float)k; e->inventory[k] = i + k; }
        POS(i) = (float)(rnd() % 1000); VEL(i) = (float)(rnd() % 20) - 10.0f;
        HP(i) = rnd() % 100; REGEN(i) = 1 + rnd() % 5;
    }
}
__attribute__((noinline)) static void move_all(float dt)
{
    for (int i = 0; i < MAXENT; i++) {
        float p = POS(i) + VEL(i) * dt;
        if (p < 0.0f || p > 1000.0f) { VEL(i) = -VEL(i); p = p < 0.0f ? 0.0f : 1000.0f; }
        POS(i) = p;
    }
}
__attribute__((noinline)) static int64_t regen_all(void)
{
    int64_t sum = 0;
    for (int i = 0; i < MAXENT; i++) {
        int32_t h = HP(i) + REGEN(i);
        if (h > 100) h -= 100;
        HP(i) = h; sum += h;
    }
    return sum;
}
int main(int argc, char **argv)
{
    int rounds = argc > 1 ? atoi(argv[1]) : 500;
    spawn_all();
    int64_t sum = 0;
    for (int r = 0; r < rounds; r++) { move_all(0.05f); sum += regen_all(); }
    double p = 0; uint64_t c = 0;
    for (int i = 0; i < MAXENT; i++) p += POS(i);
    for (int i = 0; i < MAXENT; i += 61) c += entities[i].inventory[2] + entities[i].mesh + entities[i].parent;
    printf("%lld %.3f %llu\n", (long long)sum, p, (unsigned long long)c);
    return 0;
}
