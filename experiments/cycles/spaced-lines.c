/* SPDX-License-Identifier: MIT OR Apache-2.0
 *
 * Cycles of accesses to lines that another CPU uses as well, by what both compute between two of them: additions, stores
 * and atomics to a word of one's own, and loads of lines that the other stores or adds to; the sum or the value is a part
 * of the computation, or not.
 * Two threads on CPUs of their own, together on the same lines and apart on lines of their own, in turn; medians and
 * quartiles of five turns, in nanoseconds an access. Each thread adds to a line of its own as well.
 *
 *   cc -O2 -pthread -o spaced-lines spaced-lines.c && ./spaced-lines
 */
#define _GNU_SOURCE
#include <pthread.h>
#include <sched.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { WORDS = 8, MOST_LINES = 4, TURNS = 5, ACCESSES = 1000000 };
enum access { ADD, STORE, ATOMIC, LOAD_SUMMED, LOAD_IN_CHAIN, ADD_IN_CHAIN, LOAD_OF_ADDED, KINDS };
static const char *const NAMES[] = {"add", "store", "add atomically", "load beside stores", "load, compute with it",
                                    "add, compute with it", "load beside adds, so"};
/* Multiplications between two accesses: four cycles each with an addition. */
static const int COMPUTED[] = {0, 4, 8, 15, 30, 60, 120};

static volatile uint64_t *memory;
static pthread_barrier_t together;
static double taken_ns[2];
static volatile uint64_t results[2 * WORDS];

struct work {
    enum access access;
    uint64_t lines;
    int computed;
    unsigned self, apart;
};

static double now_ns(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec * 1e9 + t.tv_nsec;
}

static uint64_t compute(uint64_t x, int times) {
    while (times--)
        x = x * 6364136223846793005u + 1442695040888963407u;
    return x;
}

static void use(const struct work *work, volatile uint64_t *word, uint64_t value, uint64_t *sum, uint64_t *chain) {
    switch (work->access) {
    case ADD: *word += 1; break;
    case STORE: *word = value; break;
    case ATOMIC: __atomic_fetch_add(word, 1, __ATOMIC_RELAXED); break;
    case LOAD_SUMMED: work->self == 0 ? (void)(*sum += *word) : (void)(*word = value); break;
    case LOAD_IN_CHAIN: work->self == 0 ? (void)(*chain += *word) : (void)(*word = value); break;
    case ADD_IN_CHAIN: *chain += *word += 1; break;
    case LOAD_OF_ADDED: work->self == 0 ? (void)(*chain += *word) : (void)(*word += 1); break;
    case KINDS: break;
    }
}

static void *accesses(void *given) {
    const struct work *work = given;
    cpu_set_t cpu;
    CPU_ZERO(&cpu);
    CPU_SET(work->self, &cpu);
    sched_setaffinity(0, sizeof cpu, &cpu);
    volatile uint64_t *words = memory + (work->apart ? work->self * 64 * WORDS : 0) + work->self * WORDS / 2;
    volatile uint64_t *own = memory + (256 + work->self * 64) * WORDS;
    uint64_t chain = work->self + 1, sum = 0;
    pthread_barrier_wait(&together);
    double begun = now_ns();
    for (uint64_t i = 0; i < ACCESSES; i++) {
        chain = compute(chain, work->computed);
        use(work, words + (i & (work->lines - 1)) * WORDS, i, &sum, &chain);
        *own += 1;
    }
    taken_ns[work->self] = (now_ns() - begun) / ACCESSES;
    results[work->self * WORDS] = sum + chain;
    return NULL;
}

static double first_of_both(enum access access, uint64_t lines, int computed, unsigned apart) {
    pthread_t threads[2];
    struct work works[2];
    for (unsigned self = 0; self < 2; self++) {
        works[self] = (struct work){access, lines, computed, self, apart};
        pthread_create(&threads[self], NULL, accesses, &works[self]);
    }
    for (unsigned self = 0; self < 2; self++)
        pthread_join(threads[self], NULL);
    return taken_ns[0];
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
        for (size_t at = 0; at < sizeof COMPUTED / sizeof *COMPUTED; at++)
            for (uint64_t lines = 1; lines <= MOST_LINES; lines *= 4) {
                double times[2][TURNS];
                for (int turn = 0; turn < TURNS; turn++)
                    for (unsigned apart = 0; apart < 2; apart++)
                        times[apart][turn] = first_of_both(access, lines, COMPUTED[at], apart);
                for (unsigned apart = 0; apart < 2; apart++)
                    qsort(times[apart], TURNS, sizeof(double), by_size);
                printf("%-21s %lu lines, %3d multiplications: together %6.2f [%.2f, %.2f]   apart %6.2f\n", NAMES[access],
                       (unsigned long)lines, COMPUTED[at], times[0][TURNS / 2], times[0][1], times[0][TURNS - 2],
                       times[1][TURNS / 2]);
            }
}
