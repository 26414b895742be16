/* SPDX-License-Identifier: MIT OR Apache-2.0
 *
 * Four threads, two on each node, that count in one table at random. With --own each counts in a table of its own, which it
 * touched first. With --one there is one counter. */
#include "subject.h"
#include <stdatomic.h>

enum { THREADS = 4, STEP = 8 };

static uint64_t counters = 16384, times = 120000, own, one;
static _Atomic uint64_t *tables[THREADS];
static pthread_barrier_t turn;

static _Atomic uint64_t *table(const char *program) {
    return subject_memory(program, 4096, counters * STEP * sizeof **tables);
}

static void *work(void *given) {
    const uint64_t me = (uint64_t)(uintptr_t)given;
    subject_pin("counters", (unsigned)me);
    if (own)
        tables[me] = table("counters");
    pthread_barrier_wait(&turn);
    uint64_t random = me + 1;
    for (uint64_t i = 0; i < times; i++)
        atomic_fetch_add(&tables[own ? me : 0][subject_random(&random) % counters * STEP], 1);
    return NULL;
}

int main(int argc, char **argv) {
    const struct subject_option options[] = {
        {"counters", "how many, each on a line of its own", &counters, 0},
        {"times", "additions of a thread", &times, 0},
        {"own", "each thread has a table of its own", &own, 1},
        {"one", "one counter", &one, 1},
        {0},
    };
    subject_options(argc, argv, "Threads of two nodes count in one table.", options);
    if (one)
        counters = 1;
    cpu_set_t allowed;
    sched_getaffinity(0, sizeof allowed, &allowed);
    subject_pin(argv[0], 0);
    if (!own)
        tables[0] = table(argv[0]);
    sched_setaffinity(0, sizeof allowed, &allowed);
    pthread_barrier_init(&turn, NULL, THREADS);
    pthread_t thread[THREADS];
    for (uintptr_t i = 0; i < THREADS; i++)
        pthread_create(&thread[i], NULL, work, (void *)i);
    for (unsigned i = 0; i < THREADS; i++)
        pthread_join(thread[i], NULL);
    uint64_t sum = 0;
    for (unsigned t = 0; t < (own ? THREADS : 1); t++)
        for (uint64_t i = 0; i < counters; i++)
            sum += tables[t][i * STEP];
    printf("counters: sum=%llu\n", (unsigned long long)sum);
    return 0;
}
