/* SPDX-License-Identifier: MIT OR Apache-2.0
 *
 * Cycles from one use to the next of a line that another CPU uses as well, by what stands between: stores to lines
 * of one's own, and instructions that wait for nothing. Two threads on CPUs of their own, together on one line and
 * apart on lines of their own, in turn; medians of seven turns. Both do the same, but for a load of a line that the
 * other stores to. The clock is taken from a chain of multiplications, four cycles each with an addition.
 *
 *   cc -O2 -pthread -o far-uses far-uses.c && ./far-uses
 */
#define _GNU_SOURCE
#include <pthread.h>
#include <sched.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { WORDS = 8, TURNS = 7, USES = 500000, OWN_LINES = 128, CHAIN = 200000000 };
enum use { ADD, ADD_AND_LOAD, LOAD_BESIDE_STORES, KINDS };
static const char *const NAMES[] = {"add", "add, load another word", "load beside stores"};
static const int STORES[] = {0, 1, 2, 4, 8, 16};
/* Groups of sixteen instructions. */
static const int BETWEEN[] = {0, 1, 2, 5, 10, 20, 40};

static volatile uint64_t *memory;
static pthread_barrier_t together;
static volatile int over;
static double first_ns;

struct work {
    enum use use;
    int stores, between;
    unsigned self, apart;
};

static double now_ns(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec * 1e9 + t.tv_nsec;
}

#define INLINED static inline __attribute__((always_inline))

INLINED void use_once(const struct work *work, enum use use, volatile uint64_t *word, volatile uint64_t *own, uint64_t i,
                      uint64_t *sum) {
    int groups = work->between;
    if (groups)
        __asm__ volatile("1: .rept 7\n add $1, %%r8\n add $1, %%r9\n .endr\n dec %0\n jnz 1b"
                         : "+r"(groups)::"r8", "r9", "cc");
    switch (use) {
    case ADD: word[0] += 1; break;
    case ADD_AND_LOAD: word[0] += 1; *sum += word[1]; break;
    case LOAD_BESIDE_STORES: work->self == 0 ? (void)(*sum += word[1]) : (void)(word[0] = i); break;
    case KINDS: break;
    }
    for (int store = 0; store < work->stores; store++)
        own[(i * work->stores + store) * 5 % OWN_LINES * WORDS] = i;
}

static uint64_t uses(const struct work *work, enum use use, volatile uint64_t *word, volatile uint64_t *own) {
    uint64_t sum = 0;
    for (uint64_t i = 0; work->self == 0 ? i < USES : !over; i++)
        use_once(work, use, word, own, i, &sum);
    return sum;
}

static void *run(void *given) {
    const struct work *work = given;
    cpu_set_t cpu;
    CPU_ZERO(&cpu);
    CPU_SET(work->self, &cpu);
    sched_setaffinity(0, sizeof cpu, &cpu);
    volatile uint64_t *word = memory + (work->apart ? work->self * 64 * WORDS : 0) + work->self * WORDS / 2;
    volatile uint64_t *own = memory + (1 + work->self) * 1024 * WORDS;
    pthread_barrier_wait(&together);
    double begun = now_ns();
    uint64_t sum = work->use == ADD            ? uses(work, ADD, word, own)
                   : work->use == ADD_AND_LOAD ? uses(work, ADD_AND_LOAD, word, own)
                                               : uses(work, LOAD_BESIDE_STORES, word, own);
    if (work->self == 0) {
        first_ns = (now_ns() - begun) / USES;
        over = 1;
    }
    own[0] = sum;
    return NULL;
}

static double once(enum use use, int stores, int between, unsigned apart) {
    pthread_t threads[2];
    struct work works[2];
    over = 0;
    for (unsigned self = 0; self < 2; self++) {
        works[self] = (struct work){use, stores, between, self, apart};
        pthread_create(&threads[self], NULL, run, &works[self]);
    }
    for (unsigned self = 0; self < 2; self++)
        pthread_join(threads[self], NULL);
    return first_ns;
}

static int by_size(const void *a, const void *b) {
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static double clock_ghz(void) {
    uint64_t x = (uintptr_t)memory;
    double begun = now_ns();
    for (int i = 0; i < CHAIN; i++)
        x = x * 6364136223846793005u + 1442695040888963407u;
    double took = now_ns() - begun;
    memory[0] = x;
    return 4.0 * CHAIN / took;
}

static void compare(enum use use, int stores, int between, double ghz) {
    double times[2][TURNS];
    for (int turn = 0; turn < TURNS; turn++)
        for (unsigned apart = 0; apart < 2; apart++)
            times[apart][turn] = once(use, stores, between, apart) * ghz;
    for (unsigned apart = 0; apart < 2; apart++)
        qsort(times[apart], TURNS, sizeof(double), by_size);
    printf("%-22s %2d stores, %3d instructions between: together %4.0f [%.0f, %.0f]   apart %4.0f cycles\n", NAMES[use],
           stores, between * 16, times[0][TURNS / 2], times[0][1], times[0][TURNS - 2], times[1][TURNS / 2]);
}

int main(void) {
    memory = aligned_alloc(4096, 1 << 20);
    memset((void *)memory, 0, 1 << 20);
    pthread_barrier_init(&together, NULL, 2);
    double ghz = clock_ghz();
    for (size_t at = 0; at < sizeof STORES / sizeof *STORES; at++)
        for (int between = 0; between <= 2; between += 2)
            compare(ADD, STORES[at], between, ghz);
    for (enum use use = ADD; use < KINDS; use++)
        for (size_t at = 0; at < sizeof BETWEEN / sizeof *BETWEEN; at++)
            compare(use, 0, BETWEEN[at], ghz);
}
