/* SPDX-License-Identifier: MIT OR Apache-2.0
 *
 * Particle push: sixteen attribute arrays of 32 KiB each, laid end to end.
 * Every step reads element i of all sixteen and rewrites six of them. */
#include <stdio.h>
#include <stdlib.h>
#include <stdint.h>
#include <string.h>
#define N 4096
#ifdef TWIN
#define PAD 8                 /* one line more per array */
#else
#define PAD 0
#endif
#define S (N + PAD)
enum { X, Y, Z, VX, VY, VZ, FX, FY, FZ, IM, Q, EX, EY, EZ, DRAG, POT, NARR };

static __attribute__((noinline)) double push(double *b, long n, double dt, double e)
{
    for (long i = 0; i < n; i++) {
        double *p = b + i;
        double im = p[IM * S], q = p[Q * S], g = p[DRAG * S], pot = p[POT * S];
        double ax = (p[FX * S] + q * p[EX * S]) * im;
        double ay = (p[FY * S] + q * p[EY * S]) * im;
        double az = (p[FZ * S] + q * p[EZ * S]) * im;
        double x = p[X * S], y = p[Y * S], z = p[Z * S];
        double vx = (p[VX * S] + ax * dt) * g;
        double vy = (p[VY * S] + ay * dt) * g;
        double vz = (p[VZ * S] + az * dt) * g;
        p[VX * S] = vx; p[VY * S] = vy; p[VZ * S] = vz;
        p[X * S] = x + vx * dt; p[Y * S] = y + vy * dt; p[Z * S] = z + vz * dt;
        e += pot * q;
    }
    return e;
}

int main(int argc, char **argv)
{
    long rounds = argc > 1 ? atol(argv[1]) : 3500;
    size_t bytes = (((size_t)NARR * S * sizeof(double)) + 4095) & ~(size_t)4095;
    double *b = aligned_alloc(4096, bytes);
    if (!b) return 1;
    memset(b, 0, bytes);
    uint32_t r = 12345;
    for (int k = 0; k < NARR; k++)
        for (int i = 0; i < N; i++) {
            r = r * 1664525u + 1013904223u;
            double u = (r >> 8) / 16777216.0;
            b[(size_t)k * S + i] = k == DRAG ? 0.90 + 0.05 * u : k == IM ? 0.5 + u : u - 0.5;
        }
    double e = 0;
    for (long t = 0; t < rounds; t++)
        e = push(b, N, 1e-3, e * 0.5);
    double s = e;
    for (int k = 0; k < 6; k++)
        for (int i = 0; i < N; i++) s += b[(size_t)k * S + i] * (k + 1);
    printf("%.9g\n", s);
    free(b);
    return 0;
}
