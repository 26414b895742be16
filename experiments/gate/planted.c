/* One program with a regression to be planted: PLANT names it, and TWIN is code that changes nothing but the layout. */
#define _GNU_SOURCE
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

enum { NONE, INSTRUCTIONS, FIRST, SECOND, LAST, CALLS, WRITES, SHARED };
#ifndef PLANT
#define PLANT NONE
#endif

/* The turn of 50 that looks up twice far away; 50: none. */
static volatile int more_in = PLANT == SECOND ? 7 : 50;
/* The turn of 50 that looks into a table once more; 50: none. */
static volatile int again_in = PLANT == FIRST || PLANT == LAST ? 7 : 50;

static volatile int checks = PLANT == INSTRUCTIONS ? 6 : 4;

static unsigned near_by[1024];
static unsigned far_away[1 << 20]; /* 4 MiB: beyond the second level */
enum { NEAR_LOG2 = 16, HUGE_LOG2 = 24 };
static unsigned near_table[1 << NEAR_LOG2]; /* 256 KiB: beyond the first level */
static struct {
    volatile unsigned long count;
    char apart[PLANT == SHARED ? 0 : 120];
} counters[2] __attribute__((aligned(64)));

#ifdef TWIN
__attribute__((used, noinline)) unsigned never_called(unsigned x) { return x * 31 + near_by[x & 1023]; }
#endif

__attribute__((noinline)) static unsigned checksum(unsigned x)
{
    const int turns = checks;
    for (int i = 0; i < turns; i++)
        x = x * 1103515245 + 12345;
    return x;
}

__attribute__((noinline)) static unsigned look_up(unsigned x, int turn)
{
    const int more = more_in;
    for (int i = 0; i < 50; i++) {
        x = x * 1664525 + 1013904223;
        const int goes_far = i == 0 || (i == 1 && turn % 50 == more);
        unsigned *place = goes_far ? &far_away[x >> 12] : &near_by[x >> 22];
        x ^= *place;
        *place = x;
    }
    return x;
}

__attribute__((noinline)) static void put(const char *block, size_t bytes)
{
    if (write(1, block, bytes) != (ssize_t)bytes)
        exit(1);
}

__attribute__((noinline)) static void flush(const char *block)
{
    if (PLANT == WRITES) {
        put(block, 2048);
        put(block + 2048, 2048);
    } else {
        put(block, 4096);
    }
    if (PLANT == CALLS)
        (void)!access("/", R_OK);
}

__attribute__((noinline)) static void *count(void *own)
{
    volatile unsigned long *counter = own;
    for (int i = 0; i < 400000; i++)
        ++*counter;
    return NULL;
}

/* Multiples of the golden ratio come back to a line after all others. They follow from the turn alone, so that a look-up
 * more moves no other one. */
__attribute__((noinline)) static unsigned look_into(unsigned *table, int log2)
{
    const unsigned golden = 2654435769u, elsewhere = 1u << 30;
    const unsigned again = again_in;
    unsigned sum = 0;
    for (unsigned turn = 0; turn < 60000; turn++) {
        sum += table[turn * golden >> (32 - log2)]++;
        if (turn % 50 == again)
            sum += table[(turn + elsewhere) * golden >> (32 - log2)]++;
    }
    return sum;
}

/* 64 MiB, beyond the last level, in few page faults. */
static unsigned *huge_table(void)
{
    const size_t bytes = sizeof(unsigned) << HUGE_LOG2;
    unsigned *table = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (table == MAP_FAILED || madvise(table, bytes, MADV_HUGEPAGE) || madvise(table, bytes, MADV_POPULATE_WRITE))
        exit(1);
    return table;
}

static void count_in_threads(void)
{
    pthread_t threads[2];
    for (int i = 0; i < 2; i++)
        pthread_create(&threads[i], NULL, count, (void *)&counters[i].count);
    for (int i = 0; i < 2; i++)
        pthread_join(threads[i], NULL);
}

int main(int words, char **word)
{
    static char block[4096];
    unsigned x = 1;
    if (words > 1) {
        if (!strcmp(word[1], "threads"))
            count_in_threads();
        else if (!strcmp(word[1], "near"))
            x += look_into(near_table, NEAR_LOG2);
        else
            x += look_into(huge_table(), HUGE_LOG2);
        return x == 0;
    }
    for (int turn = 0; turn < 60000; turn++) {
        x = look_up(checksum(x), turn);
        if (turn % 1000 == 0)
            flush(block);
    }
    return x == 0;
}
