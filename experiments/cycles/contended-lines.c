/* SPDX-License-Identifier: MIT OR Apache-2.0
 *
 * Cycles of additions, stores, loads and atomics on lines that another CPU uses as well: by the number of lines, each access
 * to a line chosen at random. Two threads on CPUs of their own, together on the same lines and apart on lines of their own,
 * in turn; medians and quartiles of seven turns, in nanoseconds an access.
 *
 *   cc -O2 -pthread -o contended-lines contended-lines.c && ./contended-lines
 */
#define _GNU_SOURCE
#include <pthread.h>
#include <sched.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { LINE = 64, WORDS = LINE / 8, MOST_LINES = 64, TURNS = 7, ACCESSES = 2000000 };
enum access { ADD_OWN_WORD, STORE_OWN_WORD, ADD_ANY_WORD, STORE_AND_LOAD, ATOMIC, KINDS };
static const char *const NAMES[] = {"add to an own word", "store to an own word", "add to any word",
                                    "one stores, one loads", "add atomically"};

static volatile uint64_t *memory;
static pthread_barrier_t together;
static double taken_ns[2];
static uint64_t sums[2 * MOST_LINES];

struct work {
    enum access access;
    uint64_t lines;
    unsigned self, apart;
};

static double now_ns(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec * 1e9 + t.tv_nsec;
}

static void one(const struct work *work, volatile uint64_t *line, uint64_t random, uint64_t *sum) {
    volatile uint64_t *own = line + work->self * WORDS / 2;
    switch (work->access) {
    case ADD_OWN_WORD: *own += 1; break;
    case STORE_OWN_WORD: *own = random; break;
    case ADD_ANY_WORD: line[random >> 20 & (WORDS - 1)] += 1; break;
    case STORE_AND_LOAD: work->self == 0 ? (void)(*line = random) : (void)(*sum += *line); break;
    case ATOMIC: __atomic_fetch_add(own, 1, __ATOMIC_RELAXED); break;
    case KINDS: break;
    }
}

static void *accesses(void *given) {
    const struct work *work = given;
    cpu_set_t cpu;
    CPU_ZERO(&cpu);
    CPU_SET(work->self, &cpu);
    sched_setaffinity(0, sizeof cpu, &cpu);
    volatile uint64_t *base = memory + (work->apart ? work->self * 2 * MOST_LINES * WORDS : 0);
    uint64_t random = 88172645463325252u + work->self, sum = 0;
    pthread_barrier_wait(&together);
    double begun = now_ns();
    for (uint64_t i = 0; i < ACCESSES; i++) {
        random ^= random << 13;
        random ^= random >> 7;
        random ^= random << 17;
        one(work, base + (random & (work->lines - 1)) * WORDS, random, &sum);
    }
    taken_ns[work->self] = (now_ns() - begun) / ACCESSES;
    sums[work->self * MOST_LINES] = sum;
    return NULL;
}

static double both(enum access access, uint64_t lines, unsigned apart) {
    pthread_t threads[2];
    struct work works[2];
    for (unsigned self = 0; self < 2; self++) {
        works[self] = (struct work){access, lines, self, apart};
        pthread_create(&threads[self], NULL, accesses, &works[self]);
    }
    for (unsigned self = 0; self < 2; self++)
        pthread_join(threads[self], NULL);
    return (taken_ns[0] + taken_ns[1]) / 2;
}

static int by_size(const void *a, const void *b) {
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

int main(void) {
    memory = aligned_alloc(4096, 1 << 20);
    memset((void *)memory, 0, 1 << 20);
    pthread_barrier_init(&together, NULL, 2);
    for (enum access access = 0; access < KINDS; access++)
        for (uint64_t lines = 1; lines <= MOST_LINES; lines *= 4) {
            double times[2][TURNS];
            for (int turn = 0; turn < TURNS; turn++)
                for (unsigned apart = 0; apart < 2; apart++)
                    times[apart][turn] = both(access, lines, apart);
            for (unsigned apart = 0; apart < 2; apart++)
                qsort(times[apart], TURNS, sizeof(double), by_size);
            printf("%-21s %2lu lines: together %6.2f [%.2f, %.2f]   apart %5.2f\n", NAMES[access], (unsigned long)lines,
                   times[0][TURNS / 2], times[0][1], times[0][TURNS - 2], times[1][TURNS / 2]);
        }
}
