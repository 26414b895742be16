/* SPDX-License-Identifier: MIT OR Apache-2.0
 *
 * Two threads process packets on private data; once in 4096 packets each takes a
 * reference on its own object.  The two reference counts share a line, seldom used. */
#include <stdio.h>
#include <stdlib.h>
#include <stdint.h>
#include <stdatomic.h>
#include <pthread.h>
#ifdef TWIN
#define REF(id) ((id) * 16)
#else
#define REF(id) (id)
#endif
static _Alignas(128) atomic_ulong refs[32];
static _Alignas(128) uint64_t payload[2][512];
static _Alignas(128) struct res { uint64_t h; char pad[120]; } res[2];
static pthread_barrier_t bar;
static long rounds;

static void *worker(void *arg)
{
    long id = (long)arg;
    const uint64_t *p = payload[id];
    uint64_t h = id + 1;
    pthread_barrier_wait(&bar);
    for (long t = 0; t < rounds; t++) {
        for (long i = 0; i < 4096; i++) {
            h = (h ^ p[(h >> 55) & 511]) * 0x9E3779B97F4A7C15ull;
            h ^= h >> 31;
        }
        atomic_fetch_add(&refs[REF(id)], 1 + (h & 1));
    }
    res[id].h = h;
    return NULL;
}

int main(int argc, char **argv)
{
    rounds = argc > 1 ? atol(argv[1]) : 28000;
    uint64_t r = 88172645463325252ull;
    for (int k = 0; k < 2; k++)
        for (int i = 0; i < 512; i++) { r ^= r << 13; r ^= r >> 7; r ^= r << 17; payload[k][i] = r; }
    pthread_barrier_init(&bar, NULL, 2);
    pthread_t th[2];
    for (long k = 0; k < 2; k++) pthread_create(&th[k], NULL, worker, (void *)k);
    for (int k = 0; k < 2; k++) pthread_join(th[k], NULL);
    printf("%016llx %lu %lu\n", (unsigned long long)(res[0].h ^ (res[1].h * 3)),
           atomic_load(&refs[REF(0)]), atomic_load(&refs[REF(1)]));
    return 0;
}
