/* Memory that comes back, in several shapes; with -DTWIN each keeps what it took. Argument: shape, rounds. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

enum { MIB = 1 << 20 };

static unsigned long sum;

static void touch(unsigned char *block, size_t bytes)
{
    for (size_t at = 0; at < bytes; at += 64)
        sum += block[at] = (unsigned char)(at >> 6);
}

/* A large block for each round. */
static void block(int rounds)
{
    unsigned char *kept = NULL;
    for (int round = 0; round < rounds; round++) {
        unsigned char *now = kept ? kept : malloc(40 * MIB);
        touch(now, 2 * MIB);
#ifdef TWIN
        kept = now;
#else
        free(now);
#endif
    }
    free(kept);
}

/* A mapping for each round, as an arena of a request. */
static void arena(int rounds)
{
    unsigned char *kept = NULL;
    for (int round = 0; round < rounds; round++) {
        unsigned char *now = kept;
        if (!now)
            now = mmap(NULL, MIB, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        touch(now, MIB);
#ifdef TWIN
        kept = now;
#else
        munmap(now, MIB);
#endif
    }
}

/* A heap that grows by many small blocks and is trimmed again. */
static void heap(int rounds)
{
    enum { BLOCKS = 2048, BYTES = 2000 }; /* beyond what a thread's cache holds back */
    static unsigned char *blocks[BLOCKS];
    for (int round = 0; round < rounds; round++) {
        for (int at = 0; at < BLOCKS; at++) {
            if (!blocks[at])
                blocks[at] = malloc(BYTES);
            touch(blocks[at], BYTES);
        }
#ifndef TWIN
        for (int at = BLOCKS; at-- > 0; blocks[at] = NULL)
            free(blocks[at]);
#endif
    }
}

/* Much memory, taken once: nothing comes back. */
static void once(int rounds)
{
    size_t bytes = (size_t)rounds * 100 * 1024;
    unsigned char *all = malloc(bytes);
    touch(all, bytes);
    free(all);
}

int main(int count, char **words)
{
    const char *shape = count > 1 ? words[1] : "";
    const int rounds = count > 2 ? atoi(words[2]) : 60;
    if (!strcmp(shape, "block"))
        block(rounds);
    else if (!strcmp(shape, "arena"))
        arena(rounds);
    else if (!strcmp(shape, "heap"))
        heap(rounds);
    else if (!strcmp(shape, "once"))
        once(rounds);
    else
        return fprintf(stderr, "shapes: block, arena, heap, once\n") < 0 ? 1 : 2;
    printf("%lu\n", sum);
    return 0;
}
