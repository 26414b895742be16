/* SPDX-License-Identifier: MIT OR Apache-2.0
 *
 * Times of loads from pages, each of which waits for the one before, by the number of pages and by their distance: where
 * a level of address translation has sets, it holds fewer of those that lie farther apart. The least of several rounds,
 * in nanoseconds a load.
 *
 *   cc -O2 -o pages-apart pages-apart.c && ./pages-apart
 */
#define _GNU_SOURCE
#include <stdint.h>
#include <stdio.h>
#include <sys/mman.h>
#include <time.h>

enum { PAGE = 4096, LINE = 64, LOADS = 20000, ROUNDS = 40, FARTHEST = 2048, MOST = 512 };

static double now_ns(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec * 1e9 + t.tv_nsec;
}

/* Links a line of each page, at different offsets, in an order that nothing foresees. */
static void **linked(char *memory, int pages, int apart) {
    int order[MOST];
    uint64_t state = 1;
    for (int i = 0; i < pages; i++)
        order[i] = i;
    for (int i = pages - 1; i > 0; i--) {
        state = state * 6364136223846793005u + 1442695040888963407u;
        int other = (state >> 33) % (i + 1), kept = order[i];
        order[i] = order[other];
        order[other] = kept;
    }
    void **lines[MOST];
    for (int i = 0; i < pages; i++)
        lines[i] = (void **)(memory + (size_t)order[i] * apart * PAGE + order[i] % (PAGE / LINE) * LINE);
    for (int i = 0; i < pages; i++)
        *lines[i] = lines[(i + 1) % pages];
    return lines[0];
}

static double nanoseconds(void **first) {
    double least = 1e18;
    void **volatile last;
    for (int round = 0; round < ROUNDS; round++) {
        void **at = first;
        double begun = now_ns();
        for (int i = 0; i < LOADS; i++)
            at = *at;
        double taken = (now_ns() - begun) / LOADS;
        last = at;
        least = taken < least ? taken : least;
    }
    (void)last;
    return least;
}

int main(void) {
    size_t bytes = (size_t)MOST * FARTHEST * PAGE;
    char *memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (memory == MAP_FAILED || madvise(memory, bytes, MADV_NOHUGEPAGE))
        return 1;
    int pages[] = {4, 6, 7, 8, 12, 16, 24, 32, 48, 64, 96, 128, 256, 512};
    for (int apart = 1; apart <= FARTHEST; apart *= 2) {
        printf("%4d pages apart:", apart);
        for (unsigned i = 0; i < sizeof pages / sizeof *pages; i++)
            printf(" %d: %.2f", pages[i], nanoseconds(linked(memory, pages[i], apart)));
        printf(" ns\n");
    }
    return 0;
}
