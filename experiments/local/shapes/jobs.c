/* SPDX-License-Identifier: MIT OR Apache-2.0
 *
 * A pool of threads that works on buffers which the first thread has allocated and filled. Each buffer is always the same
 * thread's. With --few a thread has one large buffer. With --any whoever is free takes the next buffer, so that all nodes
 * read all. With --own each thread fills its buffers itself. */
#include "subject.h"

enum { THREADS = 4, LINE = 32 };

static uint64_t buffers = 32, bytes = 128 << 10, rounds = 6, few, any, own;
static unsigned char *buffer[256];
static uint64_t sums[THREADS];
static pthread_barrier_t turn;

static void fill(uint64_t which) {
    memset(buffer[which], (int)which, bytes);
}

static uint64_t use(uint64_t which) {
    uint64_t sum = 0;
    for (uint64_t at = 0; at < bytes; at += LINE)
        sum += buffer[which][at];
    return sum;
}

static void *work(void *given) {
    const uint64_t me = (uint64_t)(uintptr_t)given;
    subject_pin("jobs", (unsigned)me);
    for (uint64_t which = me; which < buffers && own; which += THREADS)
        fill(which);
    for (uint64_t round = 0; round < rounds; round++) {
        pthread_barrier_wait(&turn);
        if (any)
            /* Another thread's buffers each round, whoever is how fast. */
            for (uint64_t i = (me + round) % THREADS; i < buffers; i += THREADS)
                sums[me] += use(i);
        else
            for (uint64_t i = me; i < buffers; i += THREADS)
                sums[me] += use(i);
    }
    return NULL;
}

int main(int argc, char **argv) {
    const struct subject_option options[] = {
        {"buffers", "how many", &buffers, 0},      {"bytes", "of each", &bytes, 0},
        {"rounds", "how often each is read", &rounds, 0}, {"few", "one large buffer a thread", &few, 1},
        {"any", "any thread takes any buffer", &any, 1},  {"own", "threads fill their own buffers", &own, 1},
        {0},
    };
    subject_options(argc, argv, "A pool of threads works on buffers that the first thread has filled.", options);
    if (few) {
        bytes *= buffers / THREADS;
        buffers = THREADS;
    }
    if (buffers > 256 || bytes < LINE)
        subject_fail(argv[0], "at most 256 buffers, of 32 bytes at least");
    cpu_set_t allowed;
    sched_getaffinity(0, sizeof allowed, &allowed);
    subject_pin(argv[0], 0);
    for (uint64_t i = 0; i < buffers; i++) {
        buffer[i] = malloc(bytes);
        if (!buffer[i])
            subject_fail(argv[0], "no memory");
        if (!own)
            fill(i);
    }
    sched_setaffinity(0, sizeof allowed, &allowed);
    pthread_barrier_init(&turn, NULL, THREADS);
    pthread_t thread[THREADS];
    uint64_t sum = 0;
    for (uintptr_t i = 0; i < THREADS; i++)
        pthread_create(&thread[i], NULL, work, (void *)i);
    for (unsigned i = 0; i < THREADS; i++) {
        pthread_join(thread[i], NULL);
        sum += sums[i];
    }
    printf("jobs: sum=%llu\n", (unsigned long long)sum);
    return 0;
}
