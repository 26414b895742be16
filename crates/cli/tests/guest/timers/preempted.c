/* SPDX-License-Identifier: MIT OR Apache-2.0
 *
 * Four threads add to shared counters under one lock, as a runtime with preemption has it: a timer interrupts the
 * program every 10 ms, and a monitor looks every 1 ms and sends each thread a signal with a handler that gives the CPU
 * up. */
#define _GNU_SOURCE
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

enum { WORKERS = 4, KEYS = 4096 };
static const struct timespec between_looks = {.tv_nsec = 1000 * 1000};
static const struct itimerval interval = {{0, 10 * 1000}, {0, 10 * 1000}};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static uint64_t counts[KEYS];
static long each;
static atomic_int threads[WORKERS];
static atomic_int running = WORKERS;

static void preempted(int number)
{
    if (number == SIGURG)
        sched_yield();
}

static void *work(void *at)
{
    int worker = (int)(intptr_t)at;
    uint32_t key = (uint32_t)worker;
    atomic_store(&threads[worker], (int)syscall(SYS_gettid));
    for (long i = 0; i < each; i++) {
        key = key * 1664525 + 1013904223;
        pthread_mutex_lock(&lock);
        counts[key % KEYS]++;
        pthread_mutex_unlock(&lock);
    }
    atomic_store(&threads[worker], 0);
    atomic_fetch_sub(&running, 1);
    return NULL;
}

static void *monitor(void *unused)
{
    (void)unused;
    while (atomic_load(&running)) {
        nanosleep(&between_looks, NULL);
        for (int worker = 0; worker < WORKERS; worker++) {
            int thread = atomic_load(&threads[worker]);
            if (thread)
                syscall(SYS_tgkill, getpid(), thread, SIGURG);
        }
    }
    return NULL;
}

int main(int count, char **words)
{
    each = count > 1 ? atol(words[1]) : 1000;
    const struct sigaction action = {.sa_handler = preempted, .sa_flags = SA_RESTART};
    sigaction(SIGURG, &action, NULL);
    sigaction(SIGALRM, &action, NULL);
    setitimer(ITIMER_REAL, &interval, NULL);
    pthread_t tasks[WORKERS + 1];
    for (intptr_t worker = 0; worker < WORKERS; worker++)
        pthread_create(&tasks[worker], NULL, work, (void *)worker);
    pthread_create(&tasks[WORKERS], NULL, monitor, NULL);
    uint64_t total = 0;
    for (int task = 0; task <= WORKERS; task++)
        pthread_join(tasks[task], NULL);
    for (int key = 0; key < KEYS; key++)
        total += counts[key];
    printf("%lu\n", (unsigned long)total);
    return 0;
}
