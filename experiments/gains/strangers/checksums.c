/* SPDX-License-Identifier: MIT OR Apache-2.0
 *
 * Two consumers check 40-byte messages with a table CRC and publish their position
 * after each one (sequentially consistent store); every 64 messages each looks at
 * the other's position.  The two words share a line; the twin parts them. */
#include <stdio.h>
#include <stdlib.h>
#include <stdint.h>
#include <stdatomic.h>
#include <pthread.h>
#ifdef TWIN
#define WORD(id) ((id) * 16)
#else
#define WORD(id) (id)
#endif
#define QLEN 64
#define MLEN 40
static _Alignas(128) atomic_ulong pos[32];
static _Alignas(128) uint32_t crctab[256];
static _Alignas(128) uint8_t queue[2][QLEN * 64];
static _Alignas(128) struct res { uint32_t crc; unsigned long back; char pad[112]; } res[2];
static pthread_barrier_t bar;
static long rounds;

static void *worker(void *arg)
{
    long id = (long)arg;
    atomic_ulong *mine = &pos[WORD(id)], *other = &pos[WORD(1 - id)];
    const uint8_t *q = queue[id];
    unsigned long n = rounds * 1000ul, last = 0, back = 0;
    uint32_t c = 0xffffffffu;
    pthread_barrier_wait(&bar);
    for (unsigned long k = 1; k <= n; k++) {
        const uint8_t *m = q + (k & (QLEN - 1)) * 64;
        for (int i = 0; i < MLEN; i++)
            c = crctab[(c ^ m[i]) & 255] ^ (c >> 8);
        atomic_store(mine, k);
        if ((k & 63) == 0) {
            unsigned long o = atomic_load_explicit(other, memory_order_acquire);
            back += o < last;
            last = o;
        }
    }
    res[id].crc = c;
    res[id].back = back;
    return NULL;
}

int main(int argc, char **argv)
{
    rounds = argc > 1 ? atol(argv[1]) : 2900;
    for (uint32_t i = 0; i < 256; i++) {
        uint32_t c = i;
        for (int b = 0; b < 8; b++) c = c & 1 ? 0xedb88320u ^ (c >> 1) : c >> 1;
        crctab[i] = c;
    }
    uint32_t r = 31337;
    for (int k = 0; k < 2; k++)
        for (int i = 0; i < QLEN * 64; i++) { r = r * 1664525u + 1013904223u; queue[k][i] = r >> 24; }
    pthread_barrier_init(&bar, NULL, 2);
    pthread_t th[2];
    for (long k = 0; k < 2; k++) pthread_create(&th[k], NULL, worker, (void *)k);
    for (int k = 0; k < 2; k++) pthread_join(th[k], NULL);
    printf("%08x %08x %lu %lu\n", res[0].crc, res[1].crc, res[0].back + res[1].back,
           atomic_load(&pos[WORD(0)]) + atomic_load(&pos[WORD(1)]));
    return 0;
}
