/* SPDX-License-Identifier: MIT OR Apache-2.0
 *
 * Two threads build one histogram of 512 bins (64 lines) with relaxed atomic adds.
 * The twin gives each thread bins of its own; both sum the two sets at the end. */
#include <stdio.h>
#include <stdlib.h>
#include <stdint.h>
#include <stdatomic.h>
#include <pthread.h>
#define BINS 512
#define SAMPLES 16384
static _Alignas(4096) atomic_ulong bins[2][BINS];
static _Alignas(4096) uint16_t sample[2][SAMPLES];
static pthread_barrier_t bar;
static long rounds;

static void *worker(void *arg)
{
    long id = (long)arg;
#ifdef TWIN
    atomic_ulong *b = bins[id];
#else
    atomic_ulong *b = bins[0];
#endif
    const uint16_t *s = sample[id];
    pthread_barrier_wait(&bar);
    for (long t = 0; t < rounds; t++)
        for (long i = 0; i < SAMPLES; i++)
            atomic_fetch_add_explicit(&b[s[i]], 1, memory_order_relaxed);
    return NULL;
}

int main(int argc, char **argv)
{
    rounds = argc > 1 ? atol(argv[1]) : 500;
    uint32_t r = 99;
    for (int k = 0; k < 2; k++)
        for (int i = 0; i < SAMPLES; i++) {
            r = r * 1664525u + 1013904223u;
            sample[k][i] = (uint16_t)((r >> 16) % BINS);
        }
    pthread_barrier_init(&bar, NULL, 2);
    pthread_t th[2];
    for (long k = 0; k < 2; k++) pthread_create(&th[k], NULL, worker, (void *)k);
    for (int k = 0; k < 2; k++) pthread_join(th[k], NULL);
    uint64_t s = 0;
    for (int i = 0; i < BINS; i++)
        s = s * 31 + atomic_load(&bins[0][i]) + atomic_load(&bins[1][i]);
    printf("%016llx\n", (unsigned long long)s);
    return 0;
}
