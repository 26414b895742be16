/* SPDX-License-Identifier: MIT OR Apache-2.0
 *
 * What a walk of the page table takes, by the tables that are walked to: 8,192 pages lie in more and more of them, eight
 * pages in a row. Loads wait for one another, and then for none. A table has the entries of 2 MiB.
 *
 * gcc -O2 -o tables tables.c && ./tables */
#define _GNU_SOURCE
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <time.h>

enum { PAGES = 8192, ROW = 8, PAGE = 4096, TABLE = 2 << 20, LINE = 64, ROUNDS = 20 };

static double now_ns(void) {
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return time.tv_sec * 1e9 + time.tv_nsec;
}

/* The line of a page, where the pages of a table are rows at equal distances. */
static char *place(char *memory, int page, int tables) {
    int of_a_table = PAGES / tables, in_table = page % of_a_table, rows = of_a_table / ROW;
    size_t row = (size_t)(in_table / ROW) * (TABLE / rows);
    return memory + (size_t)(page / of_a_table) * TABLE + row + (size_t)(in_table % ROW) * PAGE + (size_t)(page % 64) * LINE;
}

static void shuffle(char **lines) {
    uint64_t state = 88172645463325252u;
    for (int at = PAGES - 1; at > 0; at--) {
        state ^= state << 13, state ^= state >> 7, state ^= state << 17;
        int other = (int)(state % (uint64_t)(at + 1));
        char *line = lines[at];
        lines[at] = lines[other], lines[other] = line;
    }
}

static double side_by_side(char **lines) {
    double least = 1e9;
    for (int round = 0; round < ROUNDS; round++) {
        double from = now_ns();
        for (int at = 0; at < PAGES; at++)
            *(volatile char *)lines[at];
        double took = (now_ns() - from) / PAGES;
        least = took < least ? took : least;
    }
    return least;
}

static double one_by_one(char **lines) {
    for (int at = 0; at < PAGES; at++)
        *(char **)lines[at] = lines[(at + 1) % PAGES];
    double least = 1e9;
    for (int round = 0; round < ROUNDS; round++) {
        char *volatile *line = (char *volatile *)lines[0];
        double from = now_ns();
        for (int at = 0; at < PAGES; at++)
            line = (char *volatile *)*line;
        double took = (now_ns() - from) / PAGES;
        least = took < least ? took : least;
    }
    return least;
}

int main(void) {
    printf("8,192 pages of 4 KiB, a line of each\ntables  side by side  one by one\n");
    for (int tables = 16; tables <= 512; tables *= 2) {
        size_t bytes = (size_t)(tables + 1) * TABLE;
        char *mapped = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
        if (mapped == MAP_FAILED)
            return perror("tables: mmap"), 1;
        madvise(mapped, bytes, MADV_NOHUGEPAGE);
        char *memory = (char *)(((uintptr_t)mapped + TABLE - 1) & ~(uintptr_t)(TABLE - 1)), *lines[PAGES];
        for (int page = 0; page < PAGES; page++) {
            lines[page] = place(memory, page, tables);
            *lines[page] = 1;
        }
        shuffle(lines);
        double apart = side_by_side(lines);
        printf("%6d  %9.1f ns  %7.1f ns\n", tables, apart, one_by_one(lines));
        munmap(mapped, bytes);
    }
    return 0;
}
