/* SPDX-License-Identifier: MIT OR Apache-2.0
 *
 * One thread holds a mutex for --hold microseconds, --times times; another waits for it each time, at the line marked
 * below. It prints what the waiter itself measured: what an observer should find, less the cost of entering the kernel. */
#include "subject.h"
#include <unistd.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static uint64_t times = 1000, hold_us = 2000;
static int held[2], freed[2]; /* pipes: no futex waits but the one to be found */
static uint64_t waits;
static double waited_ns;

static __attribute__((noinline)) void wait_for_the_lock(void) {
    if (pthread_mutex_trylock(&lock) != 0) { /* else this thread came too late to wait */
        double start = subject_now_ns();
        pthread_mutex_lock(&lock); /* known lock wait */
        waited_ns += subject_now_ns() - start;
        waits++;
    }
    pthread_mutex_unlock(&lock);
}

static void *waiter(void *nothing) {
    char byte;
    while (read(held[0], &byte, 1) == 1) {
        wait_for_the_lock();
        if (write(freed[1], &byte, 1) != 1)
            break;
    }
    return nothing;
}

static void hold_once(void) {
    struct timespec until;
    char byte = 0;
    pthread_mutex_lock(&lock);
    if (write(held[1], &byte, 1) != 1)
        abort();
    clock_gettime(CLOCK_MONOTONIC, &until);
    until.tv_nsec += (long)hold_us * 1000;
    until.tv_sec += until.tv_nsec / 1000000000;
    until.tv_nsec %= 1000000000;
    clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &until, NULL);
    pthread_mutex_unlock(&lock);
    if (read(freed[0], &byte, 1) != 1)
        abort();
}

int main(int argc, char **argv) {
    const struct subject_option options[] = {
        {"times", "how often the mutex is held", &times, 0},
        {"hold", "microseconds it is held", &hold_us, 0},
        {0},
    };
    subject_options(argc, argv, "One thread holds a mutex, another waits for it: a known lock wait.", options);
    if (hold_us > 1000000 || pipe(held) != 0 || pipe(freed) != 0)
        subject_fail(argv[0], "--hold is at most 1000000, and two pipes are needed");
    pthread_t thread;
    if (pthread_create(&thread, NULL, waiter, NULL) != 0)
        subject_fail(argv[0], "no second thread");
    for (uint64_t i = 0; i < times; i++)
        hold_once();
    close(held[1]);
    pthread_join(thread, NULL);
    printf("known-lock-wait: waits=%llu hold_us=%llu waited_ns=%.0f\n", (unsigned long long)waits,
           (unsigned long long)hold_us, waited_ns);
    return 0;
}
