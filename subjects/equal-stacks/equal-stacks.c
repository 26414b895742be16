/* SPDX-License-Identifier: MIT OR Apache-2.0
 *
 * Colliding thread stacks: each of many threads keeps a buffer at the same depth of its stack, and one walks them all,
 * again and again. Stacks are mapped alike, so the buffers share a few cache sets. `nearmiss apply color --stacks`
 * spreads them. */
#include "subject.h"

enum { MOST_THREADS = 1024, LINES = 4, WORDS = 8 };

static pthread_barrier_t ready, done;
static volatile uint64_t *buffers[MOST_THREADS];

static void *hold(void *argument) {
    volatile uint64_t buffer[LINES * WORDS] __attribute__((aligned(64)));
    for (int i = 0; i < LINES * WORDS; i++)
        buffer[i] = 1;
    buffers[(uintptr_t)argument] = buffer;
    pthread_barrier_wait(&ready);
    pthread_barrier_wait(&done);
    return NULL;
}

static __attribute__((noinline)) uint64_t look_around(uint64_t threads, uint64_t rounds) {
    uint64_t sum = 0;
    for (uint64_t round = 0; round < rounds; round++)
        for (uint64_t i = 0; i < threads; i++)
            for (int line = 0; line < LINES; line++)
                sum += buffers[i][line * WORDS];
    return sum;
}

int main(int argc, char **argv) {
    uint64_t threads = 64, rounds = 200000;
    const struct subject_option options[] = {
        {"threads", "threads that hold a buffer on their stacks", &threads, 0},
        {"rounds", "times that all buffers are read", &rounds, 0},
        {0},
    };
    subject_options(argc, argv, "Reads buffers on many threads' stacks, which lie at the same offset of their pages.", options);
    if (threads < 1 || threads > MOST_THREADS || rounds < 1)
        subject_fail(argv[0], "--threads is 1 to 1024, --rounds at least 1");
    pthread_t handles[MOST_THREADS];
    pthread_barrier_init(&ready, NULL, (unsigned)threads + 1);
    pthread_barrier_init(&done, NULL, (unsigned)threads + 1);
    for (uint64_t i = 0; i < threads; i++)
        if (pthread_create(&handles[i], NULL, hold, (void *)(uintptr_t)i))
            subject_fail(argv[0], "cannot start so many threads");
    pthread_barrier_wait(&ready);
    double from = subject_now_ns();
    uint64_t sum = look_around(threads, rounds);
    double ns = (subject_now_ns() - from) / (double)(rounds * threads * LINES);
    pthread_barrier_wait(&done);
    for (uint64_t i = 0; i < threads; i++)
        pthread_join(handles[i], NULL);
    printf("equal-stacks: threads %llu, lines %llu, ns_per_line %.3f\n", (unsigned long long)threads,
           (unsigned long long)(rounds * threads * LINES), ns);
    return sum != rounds * threads * LINES;
}
