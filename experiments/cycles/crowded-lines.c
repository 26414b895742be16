/* SPDX-License-Identifier: MIT OR Apache-2.0
 *
 * Times of a load and a store of lines that share sets of the first level: by the number of lines of a set, by the
 * number of sets in turn, and of stores behind loads where other lines of the set are only loaded. The least of several rounds, in cycles of a chain of multiplications' clock.
 *
 *   cc -O2 -o crowded-lines crowded-lines.c && ./crowded-lines GHZ
 */
#define _GNU_SOURCE
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { PAGE = 4096, LINE = 64, ROUNDS = 100, TURNS = 20, MOST = 1 << 13 };

static char *place[MOST];
static double ghz;

static double now_ns(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec * 1e9 + t.tv_nsec;
}

#define CYCLES(name, access)                                                                                            \
    static double name(int count) {                                                                                     \
        double least = 1e18;                                                                                            \
        uint64_t sum = 0;                                                                                               \
        for (int round = 0; round < ROUNDS; round++) {                                                                  \
            double begun = now_ns();                                                                                    \
            for (int turn = 0; turn < TURNS; turn++)                                                                    \
                for (int i = 0; i < count; i++) {                                                                       \
                    volatile uint64_t *word = (void *)place[i];                                                         \
                    access;                                                                                             \
                }                                                                                                       \
            double taken = (now_ns() - begun) / TURNS / count;                                                          \
            least = taken < least ? taken : least;                                                                      \
        }                                                                                                               \
        return (least + (double)(sum & 0)) * ghz;                                                                       \
    }

CYCLES(load, sum += *word)
CYCLES(store, *word = (uint64_t)i)
CYCLES(both, ++*word)

/* Cycles of a turn that adds to some lines of a set and only loads others, in turn. */
static double beside(int added, int loaded) {
    double least = 1e18;
    uint64_t sum = 0;
    for (int round = 0; round < ROUNDS; round++) {
        double begun = now_ns();
        for (int turn = 0; turn < TURNS; turn++)
            for (int i = 0; i < added || i < loaded; i++) {
                if (i < loaded)
                    sum += *(volatile uint64_t *)place[added + i];
                if (i < added)
                    ++*(volatile uint64_t *)place[i];
            }
        double taken = (now_ns() - begun) / TURNS;
        least = taken < least ? taken : least;
    }
    return (least + (double)(sum & 0)) * ghz;
}

static void print_beside(char *memory) {
    int added[] = {4, 8, 9, 10, 11, 12, 14, 16}, loaded[] = {0, 2, 4, 9, 18};
    for (int n = 0; n < 64; n++)
        place[n] = memory + n * PAGE;
    for (unsigned k = 0; k < sizeof added / sizeof *added; k++) {
        printf("%3d lines of one set added to in turn, and", added[k]);
        for (unsigned i = 0; i < sizeof loaded / sizeof *loaded; i++)
            printf("%s %d loaded %6.1f", i ? "," : "", loaded[i], beside(added[k], loaded[i]));
        printf(" cycles a turn\n");
    }
}

static void print(const char *what, int number, int count) {
    printf("%3d %-24s load %6.2f   store %6.2f   both %6.2f\n", number, what, load(count), store(count), both(count));
}

int main(int argc, char **argv) {
    ghz = argc > 1 ? atof(argv[1]) : 1;
    char *memory = aligned_alloc(PAGE, 128 * PAGE);
    if (!memory)
        return 1;
    memset(memory, 1, 128 * PAGE);
    int lines[] = {8, 12, 14, 18, 20, 24, 32, 48, 64, 80};
    for (unsigned k = 0; k < sizeof lines / sizeof *lines; k++) {
        for (int n = 0; n < lines[k]; n++)
            place[n] = memory + n * PAGE;
        print("lines of one set", lines[k], lines[k]);
    }
    for (int sets = 1; sets <= 64; sets *= 2) {
        int count = 0;
        for (int n = 0; n < 64; n++)
            for (int set = 0; set < sets; set++)
                place[count++] = memory + n * PAGE + set * (64 / sets) * LINE;
        print("sets of 64 lines, in turn", sets, count);
    }
    print_beside(memory);
    return 0;
}
