/* Packet router in two processes which share one block of memory: the classifier reads the
   routing configuration for each packet; the collector bumps its progress mark for each record.
   They classify/collect in rounds; between the rounds both compress their own journals. */
#define _GNU_SOURCE
#include <pthread.h>
#include <stdio.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>
#ifndef PKTS
#define PKTS 2500000
#endif
#ifndef RECS
#define RECS 5000000
#endif
#ifndef JOURNAL
#define JOURNAL 60
#endif
struct config { uint32_t mask, salt, limit, shift; };
struct shared {
    struct config cfg;              /* read for each packet, never written after start */
    uint64_t progress;              /* the collector's heartbeat */
    uint64_t dropped;
    pthread_barrier_t bar;
    uint64_t result[2];
} __attribute__((aligned(256)));
enum { ROUNDS = 5 };

static uint64_t mix(uint64_t x) { x ^= x >> 31; x *= 0x9E3779B97F4A7C15ull; x ^= x >> 29; return x; }

static uint64_t journal(unsigned char *buf, size_t n, uint64_t seed)
{
    /* delta + run-length coding of a private journal */
    uint64_t out = 0;
    for (int k = 0; k < JOURNAL; k++) {
        for (size_t i = 0; i < n; i += 8) {
            seed = mix(seed + i);
            *(uint64_t *)(buf + i) = seed & 0x0101010101010101ull;
        }
        unsigned char prev = 0; unsigned run = 0;
        for (size_t i = 0; i < n; i++) {
            unsigned char d = buf[i] ^ prev; prev = buf[i];
            if (d == 0 && run < 255) run++;
            else { out = out * 31 + run + d; run = 0; }
        }
    }
    return out;
}
static uint64_t classifier(struct shared *s, unsigned char *buf)
{
    static uint32_t route[1024];
    uint64_t sum = 0, x = 7;
    volatile struct config *c = &s->cfg;
    for (int r = 0; r < ROUNDS; r++) {
        pthread_barrier_wait(&s->bar);
        for (int i = 0; i < PKTS; i++) {
            uint32_t h = (uint32_t)mix(x + i) ^ c->salt;
            uint32_t slot = (h >> c->shift) & c->mask;
            if (route[slot] < c->limit) route[slot]++;
            else sum += slot;
            x += route[slot] & 3;
        }
        pthread_barrier_wait(&s->bar);
        sum += journal(buf, 256 << 10, sum);
    }
    return sum;
}
static uint64_t collector(struct shared *s, unsigned char *buf)
{
    uint64_t sum = 0, x = 99;
    volatile uint64_t *prog = &s->progress, *drop = &s->dropped;
    for (int r = 0; r < ROUNDS; r++) {
        pthread_barrier_wait(&s->bar);
        for (int i = 0; i < RECS; i++) {
            x = mix(x + i); x = mix(x ^ 0x5555);
            sum += x & 0xff;
            *prog = *prog + 1;
            if ((x & 15) == 0) *drop = *drop + 1;
        }
        pthread_barrier_wait(&s->bar);
        sum += journal(buf, 256 << 10, sum);
    }
    return sum;
}
int main(void)
{
    struct shared *s = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    pthread_barrierattr_t a;
    pthread_barrierattr_init(&a);
    pthread_barrierattr_setpshared(&a, PTHREAD_PROCESS_SHARED);
    pthread_barrier_init(&s->bar, &a, 2);
    s->cfg = (struct config){ 1023, 0xabcdef, 4000, 9 };
    unsigned char *buf = malloc(256 << 10);
    pid_t pid = fork();
    if (pid == 0) { s->result[1] = collector(s, buf); _exit(0); }
    s->result[0] = classifier(s, buf);
    waitpid(pid, NULL, 0);
    printf("%lx %lx %lu %lu\n", s->result[0], s->result[1], s->progress, s->dropped);
    return 0;
}
