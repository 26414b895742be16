/* SPDX-License-Identifier: MIT OR Apache-2.0
 *
 * Nothing to remedy: two pinned threads, each working in order through a small buffer of its own that fits any first
 * level, each in lines of its own. All misses there are first touches. */
#include "subject.h"

enum { WORDS = 1024 }; /* 8 KiB a thread */

struct worker {
    _Alignas(4096) uint64_t buffer[WORDS];
    uint64_t passes, sum;
    unsigned cpu;
    const char *program;
};

static void *work(void *argument) {
    struct worker *w = argument;
    subject_pin(w->program, w->cpu);
    uint64_t sum = 0;
    for (uint64_t pass = 0; pass < w->passes; pass++)
        for (unsigned i = 0; i < WORDS; i++) {
            w->buffer[i] += i ^ pass;
            sum += w->buffer[i];
        }
    w->sum = sum;
    return NULL;
}

int main(int argc, char **argv) {
    uint64_t passes = 5000;
    const struct subject_option options[] = {{"passes", "passes over the buffers", &passes, 0}, {0}};
    subject_options(argc, argv, "Two threads that disturb neither each other nor themselves.", options);
    struct worker *worker = subject_memory(argv[0], 4096, 2 * sizeof *worker);
    pthread_t thread[2];
    double start = subject_now_ns();
    for (unsigned i = 0; i < 2; i++) {
        worker[i].passes = passes;
        worker[i].cpu = i;
        worker[i].program = argv[0];
        if (pthread_create(&thread[i], NULL, work, &worker[i]) != 0)
            subject_fail(argv[0], "cannot start a thread");
    }
    for (unsigned i = 0; i < 2; i++)
        pthread_join(thread[i], NULL);
    double ns = subject_now_ns() - start;
    printf("healthy: passes=%llu sum=%llu ns_per_word=%.3f\n", (unsigned long long)passes,
           (unsigned long long)(worker[0].sum + worker[1].sum), passes ? ns / ((double)passes * WORDS) : 0);
    return 0;
}
