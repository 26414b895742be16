/* Smoothing of a volume v[z][y][x] of floats, 4000 x 36 x 50: z varies fastest. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

enum { NZ = 4000, NY = 36, NX = 50 };
typedef float volume[NZ][NY][NX];

__attribute__((noinline)) static void relax_z_inner(volume *dst, const volume *src)
{
    for (int y = 0; y < NY; y++)
        for (int x = 0; x < NX; x++)
            for (int z = 1; z < NZ - 1; z++)
                (*dst)[z][y][x] = 0.5f * (*src)[z][y][x] + 0.25f * ((*src)[z - 1][y][x] + (*src)[z + 1][y][x]);
}

int main(void)
{
    volume *a = malloc(sizeof *a), *b = calloc(1, sizeof *b);
    uint32_t s = 3;
    float *p = &(*a)[0][0][0];
    for (size_t i = 0; i < (size_t)NZ * NY * NX; i++) {
        for (int r = 0; r < 3; r++)
            s = (s ^ (s >> 15)) * 0x2c1b3c6du + 0x9e3779b9u;
        p[i] = (float)(s >> 18);
    }
    for (int k = 0; k < 3; k++) {
        relax_z_inner(b, a);
        volume *t = a;
        a = b;
        b = t;
    }
    double sum = 0;
    p = &(*a)[0][0][0];
    for (size_t i = 0; i < (size_t)NZ * NY * NX; i++)
        sum += p[i];
    printf("%.3f\n", sum);
    return 0;
}
