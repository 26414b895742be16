/* SPDX-License-Identifier: MIT OR Apache-2.0
 *
 * Two chases through a small buffer each and two streams over a large one, on two CPUs. A conductor lets two of them run
 * at a time, one a CPU, by SIGSTOP and SIGCONT: like with like, or a chase with a stream. Each line of output is a round:
 * what the chases and the streams did beside their like, and beside the others (loads, both tasks together).
 *
 * neighbours ROUNDS SLICE_MS CHASE_MIB STREAM_MIB CPU CPU SEED */
#define _GNU_SOURCE
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <time.h>
#include <unistd.h>

enum { LINE = 64, TASKS = 4, LOADS_A_LOOK = 4096 };

struct shared {
    _Alignas(LINE) _Atomic uint64_t work;
    _Atomic int is_ready;
};
static struct shared *shared;

static void fail(const char *what)
{
    perror(what);
    exit(1);
}

static uint64_t next(uint64_t *random)
{
    *random ^= *random << 13;
    *random ^= *random >> 7;
    return *random ^= *random << 17;
}

static char *memory(size_t bytes)
{
    char *block = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (block == MAP_FAILED)
        fail("mmap");
    return block;
}

/* One cycle through all lines, in random order (Sattolo). */
static void chase(struct shared *own, size_t bytes)
{
    size_t lines = bytes / LINE;
    char *block = memory(bytes);
    uint32_t *order = malloc(lines * sizeof *order);
    uint64_t random = 88172645463325252ULL;
    if (!order)
        fail("malloc");
    for (size_t n = 0; n < lines; n++)
        order[n] = (uint32_t)n;
    for (size_t n = lines - 1; n; n--) {
        size_t other = next(&random) % n;
        uint32_t swapped = order[n];
        order[n] = order[other];
        order[other] = swapped;
    }
    for (size_t n = 0; n < lines; n++)
        *(void **)(block + LINE * (size_t)order[n]) = block + LINE * (size_t)order[(n + 1) % lines];
    free(order);
    void *volatile at = block;
    atomic_store(&own->is_ready, 1);
    for (;;) {
        void **here = at;
        for (int n = 0; n < LOADS_A_LOOK; n++)
            here = *here;
        at = here;
        atomic_fetch_add_explicit(&own->work, LOADS_A_LOOK, memory_order_relaxed);
    }
}

static void stream(struct shared *own, size_t bytes)
{
    volatile uint64_t *block = (void *)memory(bytes);
    size_t words = bytes / 8, step = LINE / 8;
    for (size_t n = 0; n < words; n += step)
        block[n] = n;
    atomic_store(&own->is_ready, 1);
    for (size_t n = 0;; n = (n + LOADS_A_LOOK * step) % (words - LOADS_A_LOOK * step)) {
        for (size_t at = 0; at < LOADS_A_LOOK; at++)
            block[n + at * step] += 1;
        atomic_fetch_add_explicit(&own->work, LOADS_A_LOOK, memory_order_relaxed);
    }
}

static void pause_ms(long ms)
{
    struct timespec time = {ms / 1000, ms % 1000 * 1000000};
    while (nanosleep(&time, &time))
        ;
}

/* The work of two tasks in a slice, added up by task. */
static void slice(const pid_t *tasks, int a, int b, long ms, uint64_t *did)
{
    int both[] = {a, b};
    uint64_t before[2];
    for (int n = 0; n < 2; n++)
        before[n] = atomic_load(&shared[both[n]].work);
    for (int n = 0; n < 2; n++)
        kill(tasks[both[n]], SIGCONT);
    pause_ms(ms);
    for (int n = 0; n < 2; n++)
        kill(tasks[both[n]], SIGSTOP);
    for (int n = 0; n < 2; n++)
        did[both[n]] += atomic_load(&shared[both[n]].work) - before[n];
}

int main(int argc, char **argv)
{
    if (argc != 8) {
        fprintf(stderr, "neighbours ROUNDS SLICE_MS CHASE_MIB STREAM_MIB CPU CPU SEED\n");
        return 2;
    }
    long rounds = atol(argv[1]), ms = atol(argv[2]);
    size_t small = (size_t)atol(argv[3]) << 20, large = (size_t)atol(argv[4]) << 20;
    int cpus[] = {atoi(argv[5]), atoi(argv[6])};
    uint64_t random = (uint64_t)atol(argv[7]) * 2 + 1;
    pid_t tasks[TASKS]; /* two chases, two streams; the first of each on the first CPU */
    shared = mmap(NULL, TASKS * sizeof *shared, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (shared == MAP_FAILED)
        fail("mmap");
    for (int n = 0; n < TASKS; n++) {
        tasks[n] = fork();
        if (tasks[n])
            continue;
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        cpu_set_t mask;
        CPU_ZERO(&mask);
        CPU_SET(cpus[n & 1], &mask);
        if (sched_setaffinity(0, sizeof mask, &mask))
            fail("sched_setaffinity");
        (n < 2 ? chase : stream)(&shared[n], n < 2 ? small : large);
    }
    for (int n = 0; n < TASKS; n++) {
        while (!atomic_load(&shared[n].is_ready))
            pause_ms(1);
        kill(tasks[n], SIGSTOP);
    }
    for (long round = 0; round < rounds; round++) {
        uint64_t like[TASKS] = {0}, mixed[TASKS] = {0};
        int like_first = next(&random) >> 20 & 1;
        for (int half = 0; half < 2; half++) {
            if (half ^ like_first) {
                slice(tasks, 0, 1, ms, like);
                slice(tasks, 2, 3, ms, like);
            } else {
                slice(tasks, 0, 3, ms, mixed);
                slice(tasks, 1, 2, ms, mixed);
            }
        }
        printf("%llu %llu %llu %llu\n", (unsigned long long)(like[0] + like[1]), (unsigned long long)(mixed[0] + mixed[1]),
               (unsigned long long)(like[2] + like[3]), (unsigned long long)(mixed[2] + mixed[3]));
        fflush(stdout);
    }
    for (int n = 0; n < TASKS; n++)
        kill(tasks[n], SIGKILL);
    return 0;
}
