/* One program with a regression to be planted: PLANT names it, and TWIN is code that changes nothing but the layout. */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

enum { NONE, INSTRUCTIONS, MISSES, CALLS, WRITES, SHARED };
#ifndef PLANT
#define PLANT NONE
#endif

/* The turn of 50 that looks up twice far away; 50: none. */
static volatile int more_in = PLANT == MISSES ? 7 : 50;

static volatile int checks = PLANT == INSTRUCTIONS ? 6 : 4;

static unsigned near_by[1024];
static unsigned far_away[1 << 20]; /* 4 MiB: beyond the second level */
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

int main(int words, char **word)
{
    static char block[4096];
    unsigned x = 1;
    if (words > 1) {
        pthread_t threads[2];
        for (int i = 0; i < 2; i++)
            pthread_create(&threads[i], NULL, count, (void *)&counters[i].count);
        for (int i = 0; i < 2; i++)
            pthread_join(threads[i], NULL);
        return word[1][0] == 0;
    }
    for (int turn = 0; turn < 60000; turn++) {
        x = look_up(checksum(x), turn);
        if (turn % 1000 == 0)
            flush(block);
    }
    return x == 0;
}
