/* SPDX-License-Identifier: MIT OR Apache-2.0
 *
 * Threads in shapes that the rehearsal of pairs was not written for, each with a twin that no grouping helps.
 *
 * shapes SHAPE [twin] [READS]
 *
 *   unlike    three groups of four, two and two threads; a group reads one block
 *   little    two groups; of a thread's reads a tenth go to the group's block, the others to a small one of its own
 *   streams   four chases through 192 KiB each, and four that stream through 4 MiB each
 *   early     two groups, of which the first threads end after a quarter of the work
 *   mix       what a mix of programs has: a table, a sort, a stream, counting, two of each
 *
 * The twin of `unlike`, `little` and `early` has a block for each thread; that of `streams` has small chases alone; that of
 * `mix` small memory everywhere. */
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

enum { THREADS = 8, LINE = 64, KIB = 1024 };

/* The reads of a thread: of ten reads so many from `shared`, at random; the others from `own`, at random or in order. */
struct part {
    uint64_t *shared, *own;
    size_t shared_lines, own_lines;
    int shared_of_ten, in_order;
    uint64_t reads;
};

static struct part parts[THREADS];
static uint64_t sums[THREADS];
static pthread_barrier_t filled;

static uint64_t next(uint64_t *random)
{
    *random = *random * 6364136223846793005u + 1442695040888963407u;
    return *random >> 33;
}

static uint64_t *block(size_t kib)
{
    size_t bytes = kib * KIB;
    uint64_t *memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED)
        exit(1);
    for (size_t n = 0; n < bytes / sizeof *memory; n++)
        memory[n] = n * 7;
    return memory;
}

static void *work(void *given)
{
    size_t me = (size_t)given;
    struct part *part = &parts[me];
    uint64_t random = me + 1, sum = 0, line = 0;
    pthread_barrier_wait(&filled);
    for (uint64_t n = 0; n < part->reads; n++) {
        uint64_t drawn = next(&random) ^ (sum & 1);
        if ((int)(drawn % 10) < part->shared_of_ten) {
            sum += part->shared[drawn / 10 % part->shared_lines * (LINE / sizeof *part->shared)];
        } else {
            line = part->in_order ? line + 1 : drawn / 10;
            sum += part->own[line % part->own_lines * (LINE / sizeof *part->own)];
        }
    }
    sums[me] = sum;
    return NULL;
}

static void give(int thread, uint64_t *shared, size_t shared_kib, int shared_of_ten, size_t own_kib, int in_order,
                 uint64_t reads)
{
    parts[thread] = (struct part){.shared = shared, .shared_lines = shared_kib * KIB / LINE,
                                  .own = own_kib ? block(own_kib) : shared,
                                  .own_lines = (own_kib ? own_kib : shared_kib) * KIB / LINE,
                                  .shared_of_ten = shared_of_ten, .in_order = in_order, .reads = reads};
}

int main(int argc, char **argv)
{
    static const char *const shapes[] = {"unlike", "little", "streams", "early", "mix"};
    const char *shape = argc > 1 ? argv[1] : "";
    int is_twin = argc > 2 && !strcmp(argv[2], "twin"), which = 0;
    uint64_t reads = argc > 2 + is_twin ? strtoull(argv[2 + is_twin], NULL, 10) : 100000;
    while (which < 5 && strcmp(shape, shapes[which]))
        which++;
    if (which == 5 || !reads) {
        fprintf(stderr, "shapes unlike|little|streams|early|mix [twin] [READS]\n");
        return 2;
    }
    uint64_t *blocks[3] = {block(384), block(384), block(384)};
    static const int of_three[THREADS] = {0, 1, 0, 2, 0, 1, 0, 2};
    for (int n = 0; n < THREADS; n++) {
        uint64_t *shared = which == 0 ? blocks[of_three[n]] : blocks[n % 2];
        if (is_twin && which != 2 && which != 4)
            shared = block(384);
        switch (which) {
        case 0: give(n, shared, 384, 10, 0, 0, reads); break;
        case 1: give(n, shared, 384, 1, 64, 0, reads); break;
        case 2: n % 2 && !is_twin ? give(n, shared, 384, 0, 4096, 1, reads) : give(n, shared, 384, 0, is_twin ? 64 : 192, 0, reads); break;
        case 3: give(n, shared, 384, 10, 0, 0, n < 4 ? reads / 4 : reads); break;
        default: {
            static const size_t kib[] = {256, 128, 2048, 16};
            give(n, shared, 384, 0, is_twin ? 16 : kib[n % 4], n % 4 == 2, reads);
        }
        }
    }
    pthread_barrier_init(&filled, NULL, THREADS);
    pthread_t threads[THREADS];
    for (size_t n = 1; n < THREADS; n++)
        pthread_create(&threads[n], NULL, work, (void *)n);
    work(NULL);
    uint64_t sum = sums[0];
    for (int n = 1; n < THREADS; n++) {
        pthread_join(threads[n], NULL);
        sum += sums[n];
    }
    printf("%s%s: %llu\n", shape, is_twin ? " twin" : "", (unsigned long long)sum);
    return 0;
}
