/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Settling particles: only z, vz and mass change or matter in the step. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#define NPART 40960
static uint64_t seed = 5;
static uint32_t rnd(void) { seed = seed * 6364136223846793005ull + 1442695040888963407ull; return seed >> 33; }
struct particle {
    double x, y;
#ifndef FIXED
    double z;
#endif
    double vx, vy;
#ifndef FIXED
    double vz;
#endif
    char name[24];
    double charge;
    double radius;
#ifndef FIXED
    double mass;
#endif
    uint32_t species, cell;
};
struct world {
    int n;
    struct particle *p;
#ifdef FIXED
    double *z, *vz, *mass;
#endif
};
#ifdef FIXED
#define Z(w, i) (w)->z[i]
#define VZ(w, i) (w)->vz[i]
#define MASS(w, i) (w)->mass[i]
#else
#define Z(w, i) (w)->p[i].z
#define VZ(w, i) (w)->p[i].vz
#define MASS(w, i) (w)->p[i].mass
#endif
static void *grab(size_t n) { void *p = calloc(1, n); if (!p) exit(1); return p; }
__attribute__((noinline)) static void world_fill(struct world *w, int n)
{
    w->n = n;
    w->p = grab(n * sizeof *w->p);
#ifdef FIXED
    w->z = grab(n * sizeof(double)); w->vz = grab(n * sizeof(double)); w->mass = grab(n * sizeof(double));
#endif
    for (int i = 0; i < n; i++) {
        struct particle *p = &w->p[i];
        p->x = rnd() % 1000; p->y = rnd() % 1000; p->vx = rnd() % 10; p->vy = rnd() % 10;
        memcpy(p->name, "grain", 6);
        p->charge = rnd() & 1; p->radius = 1 + (rnd() & 3); p->species = rnd() & 3;
        Z(w, i) = rnd() % 1000; VZ(w, i) = 0; MASS(w, i) = 1 + (rnd() & 7);
    }
}
__attribute__((noinline)) static double step(struct world *w, double dt)
{
    double energy = 0;
    for (int i = 0; i < w->n; i++) {
        double v = VZ(w, i) - 9.81 * dt, z = Z(w, i) + v * dt;
        if (z < 0) { z = -z; v = -0.5 * v; }
        Z(w, i) = z; VZ(w, i) = v;
        energy += MASS(w, i) * (0.5 * v * v + 9.81 * z);
    }
    return energy;
}
int main(int argc, char **argv)
{
    int rounds = argc > 1 ? atoi(argv[1]) : 700;
    struct world w;
    world_fill(&w, NPART);
    double e = 0;
    for (int r = 0; r < rounds; r++) e += step(&w, 0.01);
    double q = 0;
    for (int i = 0; i < w.n; i += 97) q += w.p[i].charge * w.p[i].radius;
    printf("%.6e %.1f\n", e, q);
    return 0;
}
