/* SPDX-License-Identifier: MIT OR Apache-2.0
 *
 * Two pinned threads, each adding to a counter of its own. The counters lie in one line, which therefore moves from
 * CPU to CPU with every addition; with --padded each has a line of its own and nothing moves. With --one-cpu both
 * threads take turns on one CPU, and the line stays there. */
#include "subject.h"

enum { LINE = 64 };

struct worker {
    volatile uint64_t *counter;
    uint64_t times;
    unsigned cpu;
    const char *program;
    pthread_barrier_t *start;
};

static void *count(void *argument) {
    struct worker *w = argument;
    subject_pin(w->program, w->cpu);
    pthread_barrier_wait(w->start);
    for (uint64_t i = 0; i < w->times; i++)
        *w->counter += 1;
    return NULL;
}

/* The line that is fought over, named so that reports can name it. */
static _Alignas(4 * LINE) char counters[4 * LINE];

int main(int argc, char **argv) {
    uint64_t times = 10000000, padded = 0, one_cpu = 0;
    const struct subject_option options[] = {
        {"times", "additions a thread", &times, 0},
        {"padded", "a line of its own for each counter", &padded, 1},
        {"one-cpu", "both threads on the first CPU", &one_cpu, 1},
        {0},
    };
    subject_options(argc, argv, "Two threads write different words of one line.", options);
    pthread_barrier_t start;
    pthread_barrier_init(&start, NULL, 2);
    struct worker worker[2];
    pthread_t thread[2];
    double begun = subject_now_ns();
    for (unsigned i = 0; i < 2; i++) {
        worker[i] = (struct worker){(uint64_t *)(counters + i * (padded ? 2 * LINE : 8)), times,
                                    one_cpu ? 0 : i, argv[0], &start};
        if (pthread_create(&thread[i], NULL, count, &worker[i]) != 0)
            subject_fail(argv[0], "cannot start a thread");
    }
    for (unsigned i = 0; i < 2; i++)
        pthread_join(thread[i], NULL);
    double ns = subject_now_ns() - begun;
    printf("false-sharing: times=%llu padded=%llu sum=%llu ns_per_addition=%.2f\n", (unsigned long long)times,
           (unsigned long long)padded, (unsigned long long)(*worker[0].counter + *worker[1].counter),
           times ? ns / times : 0);
    return 0;
}
