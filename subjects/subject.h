/* SPDX-License-Identifier: MIT OR Apache-2.0
 *
 * Shared by the subjects: options, time, random numbers, aligned memory. A subject prints one line, `NAME: figures`,
 * with its own time in nanoseconds an operation; everything but that time is the same in every run. */
#ifndef NEARMISS_SUBJECT_H
#define NEARMISS_SUBJECT_H

#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif

#include <errno.h>
#include <getopt.h>
#include <pthread.h>
#include <sched.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

/* An option with a number; or, with a NULL value, a switch that sets *value to 1. */
struct subject_option {
    const char *name;
    const char *help;
    uint64_t *value;
    int is_switch;
};

static inline void subject_fail(const char *program, const char *what) {
    fprintf(stderr, "%s: %s; see --help\n", program, what);
    exit(2);
}

/* Reads `--name N` (N may end in K, M or G) and `--name` for switches; prints help and leaves on --help. */
static inline void subject_options(int argc, char **argv, const char *about, const struct subject_option *options) {
    for (int i = 1; i < argc; i++) {
        if (strcmp(argv[i], "--help") == 0) {
            printf("%s\n\nusage: %s [options]\n", about, argv[0]);
            for (const struct subject_option *o = options; o->name; o++) {
                if (o->is_switch)
                    printf("  --%-14s %s\n", o->name, o->help);
                else
                    printf("  --%-10s N   %s (default %llu)\n", o->name, o->help, (unsigned long long)*o->value);
            }
            exit(0);
        }
    }
    for (int i = 1; i < argc; i++) {
        const struct subject_option *o = options;
        while (o->name && (strncmp(argv[i], "--", 2) != 0 || strcmp(argv[i] + 2, o->name) != 0))
            o++;
        if (!o->name)
            subject_fail(argv[0], "unknown option");
        if (o->is_switch) {
            *o->value = 1;
            continue;
        }
        if (++i == argc)
            subject_fail(argv[0], "an option lacks its number");
        char *end;
        errno = 0;
        uint64_t n = strtoull(argv[i], &end, 10);
        int shift = *end == 'K' ? 10 : *end == 'M' ? 20 : *end == 'G' ? 30 : 0;
        if (end == argv[i] || argv[i][0] == '-' || errno || end[shift ? 1 : 0] || n > UINT64_MAX >> 32 >> shift)
            subject_fail(argv[0], "an option's number is not a number such as 64, 8K or 2M");
        *o->value = n << shift;
    }
}

static inline double subject_now_ns(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec * 1e9 + t.tv_nsec;
}

/* Returns the next number; equal states give equal sequences. */
static inline uint64_t subject_random(uint64_t *state) {
    *state = *state * 6364136223846793005u + 1442695040888963407u;
    return *state >> 33;
}

/* Zeroed and touched memory. */
static inline void *subject_memory(const char *program, size_t alignment, size_t bytes) {
    void *p = NULL;
    if (posix_memalign(&p, alignment, bytes) != 0)
        subject_fail(program, "not enough memory for that size");
    memset(p, 0, bytes);
    return p;
}

/* Puts the calling thread on the n-th CPU it may run on, counting round; prints a message when it cannot. */
static inline void subject_pin(const char *program, unsigned n) {
    cpu_set_t allowed, one;
    if (sched_getaffinity(0, sizeof allowed, &allowed) == 0) {
        unsigned left = n % (unsigned)CPU_COUNT(&allowed);
        for (int cpu = 0; cpu < CPU_SETSIZE; cpu++) {
            if (!CPU_ISSET(cpu, &allowed) || left-- > 0)
                continue;
            CPU_ZERO(&one);
            CPU_SET(cpu, &one);
            if (sched_setaffinity(0, sizeof one, &one) == 0)
                return;
            break;
        }
    }
    fprintf(stderr, "%s: cannot pin a thread; it runs where the kernel puts it\n", program);
}

#endif
