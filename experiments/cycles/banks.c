/* SPDX-License-Identifier: MIT OR Apache-2.0
 *
 * Times of loads, stores and additions to lines that the first level does not hold and the second one does, by the
 * distance of the lines: where the second level gives lines from banks, lines at some distances come from few of them.
 * `beside`: with so many other instructions of a core between two of them, plain ones or loads that hit. The least of
 * several rounds, in cycles a line; a cycle is a third of a multiplication.
 *
 *   cc -O2 -o banks banks.c && ./banks
 */
#define _GNU_SOURCE
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { PAGE = 4096, LINE = 64, MOST = 4096, ROUNDS = 9, LINES_A_ROUND = 200000 };

static uint32_t offsets[MOST];
static char *memory;

static double now_ns(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec * 1e9 + t.tv_nsec;
}

#define PLAIN4 asm volatile("add $1, %%r8; add $1, %%r9; add $1, %%r10; add $1, %%r11" ::: "r8", "r9", "r10", "r11")
#define LOADS4                                                                                                         \
    asm volatile("mov (%0), %%r8; mov 8(%0), %%r9; mov 16(%0), %%r10; mov 24(%0), %%r11" ::"r"(offsets)               \
                 : "r8", "r9", "r10", "r11")
#define LOAD(at) asm volatile("mov (%0), %%rcx" ::"r"(at) : "rcx")
#define STORE(at) asm volatile("movl $1, (%0)" ::"r"(at) : "memory")
#define ADD(at) asm volatile("addl $1, (%0)" ::"r"(at) : "memory")
#define KERNEL(name, ACCESS, BESIDE)                                                                                   \
    __attribute__((noinline, aligned(64))) static void name(int lines, int turns) {                                    \
        for (int turn = 0; turn < turns; turn++)                                                                       \
            for (int i = 0; i < lines; i += 4) {                                                                       \
                ACCESS(memory + offsets[i]);                                                                           \
                BESIDE;                                                                                                \
                ACCESS(memory + offsets[i + 1]);                                                                       \
                BESIDE;                                                                                                \
                ACCESS(memory + offsets[i + 2]);                                                                       \
                BESIDE;                                                                                                \
                ACCESS(memory + offsets[i + 3]);                                                                       \
                BESIDE;                                                                                                \
            }                                                                                                          \
    }

KERNEL(loads, LOAD, )
KERNEL(loads_beside_8, LOAD, PLAIN4; PLAIN4)
KERNEL(loads_beside_4_loads, LOAD, LOADS4)
KERNEL(stores, STORE, )
KERNEL(stores_beside_8, STORE, PLAIN4; PLAIN4)
KERNEL(additions, ADD, )
KERNEL(additions_beside_8, ADD, PLAIN4; PLAIN4)

static double cycle_ns(void) {
    double least = 1e18;
    for (int round = 0; round < 20; round++) {
        double begun = now_ns();
        uint64_t x = 3;
        for (int i = 0; i < 100000; i++)
            asm volatile("imul %0, %0; imul %0, %0" : "+r"(x));
        double taken = now_ns() - begun;
        least = taken < least ? taken : least;
    }
    return least / 600000;
}

/* So many lines of each of so many sets, the sets in turn in an order that nothing foresees. Returns how many. */
static int lay_out(int sets, int distance, int lines) {
    uint64_t state = 1;
    int count = 0;
    for (int line = 0; line < lines; line++) {
        uint32_t *turn = offsets + count;
        for (int set = 0; set < sets; set++)
            turn[set] = line * PAGE + set * distance * LINE;
        for (int set = sets - 1; set > 0; set--) {
            state = state * 6364136223846793005u + 1442695040888963407u;
            int other = (state >> 33) % (set + 1);
            uint32_t kept = turn[set];
            turn[set] = turn[other];
            turn[other] = kept;
        }
        count += sets;
    }
    return count / 4 * 4;
}

int main(void) {
    static const struct {
        const char *name;
        void (*run)(int, int);
    } kernels[] = {{"load", loads}, {"beside 8", loads_beside_8}, {"beside 4 loads", loads_beside_4_loads},
                   {"store", stores}, {"beside 8", stores_beside_8}, {"add", additions}, {"beside 8", additions_beside_8}};
    static const int shapes[][3] = {{64, 1, 8},  {64, 1, 40}, {16, 1, 40}, {16, 2, 40}, {16, 3, 40}, {16, 4, 40},
                                    {16, 4, 20}, {8, 8, 40},  {4, 1, 40},  {4, 4, 40},  {4, 16, 40}, {4, 4, 20},
                                    {1, 1, 20},  {1, 1, 40},  {1, 1, 64}};
    memory = aligned_alloc(2 << 20, 2 << 20);
    if (!memory)
        return 1;
    memset(memory, 1, 2 << 20);
    double cycle = cycle_ns();
    for (unsigned shape = 0; shape < sizeof shapes / sizeof *shapes; shape++) {
        const int *s = shapes[shape];
        int lines = lay_out(s[0], s[1], s[2]), turns = LINES_A_ROUND / lines + 1;
        printf("%2d sets, %2d apart, %2d lines of each:", s[0], s[1], s[2]);
        for (unsigned kernel = 0; kernel < sizeof kernels / sizeof *kernels; kernel++) {
            double least = 1e18;
            for (int round = 0; round < ROUNDS; round++) {
                double begun = now_ns();
                kernels[kernel].run(lines, turns);
                double taken = now_ns() - begun;
                least = taken < least ? taken : least;
            }
            printf("  %s %5.2f", kernels[kernel].name, least / cycle / ((double)lines * turns));
        }
        printf("\n");
    }
    return 0;
}
