/* SPDX-License-Identifier: MIT OR Apache-2.0
 *
 * Shared by the planted programs. Compiled with -DTWIN, a program has its fault no more and does the same work: it
 * prints the same digest. Every program is called as `PROGRAM SIZE [SHAPE...]`. */
#ifndef NEARMISS_PLANTED_H
#define NEARMISS_PLANTED_H

#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif

#include <pthread.h>
#include <sched.h>
#include <stdalign.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>

enum { LINE = 64, PAGE = 4096, L1_SETS = 64, MOST_THREADS = 64 };

/* Two lines, because hardware fetches lines in pairs. */
#ifdef TWIN
enum { TWINNED = 1 };
#define ALONE alignas(2 * LINE)
#else
enum { TWINNED = 0 };
#define ALONE
#endif

/* Reports name the function, and no call of it is folded into another. */
#define HOT __attribute__((noipa))

static inline void planted_fail(const char *what) {
    fprintf(stderr, "%s; call it as PROGRAM SIZE [SHAPE...]\n", what);
    exit(2);
}

/* The n-th argument, a number from 1 to `most`. */
static inline uint64_t argument(int argc, char **argv, int n, uint64_t most) {
    char *end = NULL;
    uint64_t value = n < argc ? strtoull(argv[n], &end, 10) : 0;
    if (!end || *end || value < 1 || value > most)
        planted_fail("an argument is missing or out of range");
    return value;
}

static inline uint64_t now_ns(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

/* Returns main's exit status. */
static inline int report(uint64_t digest, uint64_t begun_ns) {
    printf("digest=%016llx ns=%llu\n", (unsigned long long)digest, (unsigned long long)(now_ns() - begun_ns));
    return 0;
}

static inline uint64_t mix(uint64_t x) {
    x ^= x >> 31;
    x *= 0x9e3779b97f4a7c15u;
    return x ^ x >> 29;
}

static inline void *memory(size_t alignment, size_t bytes) {
    void *p = NULL;
    if (posix_memalign(&p, alignment, bytes) != 0)
        planted_fail("not enough memory for that size");
    memset(p, 0, bytes);
    return p;
}

static inline void *mapping(size_t bytes) {
    void *p = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (p == MAP_FAILED)
        planted_fail("not enough memory for that size");
    return p;
}

/* Large cleared memory, as the C library gives it. The twin's lies in pages of 2 MiB. The fault needs a machine that
 * gives those on request only ("madvise" in /sys/kernel/mm/transparent_hugepage/enabled). */
static inline void *paged(size_t bytes) {
#ifdef TWIN
    size_t large = 2 << 20, whole = (bytes + large - 1) / large * large;
    char *p = (char *)mapping(whole + large);
    p += (large - (uintptr_t)p % large) % large;
    if (madvise(p, whole, MADV_HUGEPAGE) != 0)
        planted_fail("this kernel has no large pages");
#else
    char *p = (char *)calloc(1, bytes);
    if (!p)
        planted_fail("not enough memory for that size");
#endif
    return p;
}

/* Puts the calling thread on the n-th CPU that it may run on, counting round. */
static inline void pin(unsigned n) {
    cpu_set_t allowed, one;
    if (sched_getaffinity(0, sizeof allowed, &allowed) != 0)
        return;
    unsigned left = n % (unsigned)CPU_COUNT(&allowed);
    for (int cpu = 0; cpu < CPU_SETSIZE; cpu++) {
        if (!CPU_ISSET(cpu, &allowed) || left-- > 0)
            continue;
        CPU_ZERO(&one);
        CPU_SET(cpu, &one);
        sched_setaffinity(0, sizeof one, &one);
        return;
    }
}

struct member {
    void (*work)(unsigned self, uint64_t size);
    unsigned self;
    uint64_t size;
    pthread_barrier_t *start;
};

static inline void *member_run(void *argument) {
    struct member m = *(struct member *)argument;
    pin(m.self);
    pthread_barrier_wait(m.start);
    m.work(m.self, m.size);
    return NULL;
}

/* Runs `work` on so many threads at once, each pinned to a CPU in turn; returns when all are done. */
static inline void on_threads(unsigned threads, void (*work)(unsigned self, uint64_t size), uint64_t size) {
    pthread_t handle[MOST_THREADS];
    struct member member[MOST_THREADS];
    pthread_barrier_t start;
    pthread_barrier_init(&start, NULL, threads);
    for (unsigned i = 0; i < threads; i++) {
        member[i] = (struct member){work, i, size, &start};
        if (pthread_create(&handle[i], NULL, member_run, &member[i]) != 0)
            planted_fail("cannot start a thread");
    }
    for (unsigned i = 0; i < threads; i++)
        pthread_join(handle[i], NULL);
}

#endif
