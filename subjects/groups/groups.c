/* SPDX-License-Identifier: MIT OR Apache-2.0
 *
 * Threads in groups: those of a group read one block, at random, over and over. Two of one group that share a cache bring
 * each other what both need; two of different groups push out each other's block. With --own each thread reads a block
 * of its own: whoever shares a cache, it is all the same. */
#include "subject.h"
#include "nearmiss.h"

enum { LINE = 64, MOST_THREADS = 64 };

static uint64_t threads = 8, groups = 2, block = 384 << 10, reads = 100000, own;
static uint64_t *blocks;
static uint64_t sums[MOST_THREADS];
static pthread_barrier_t filled;

static void *work(void *given) {
    const uint64_t me = (uint64_t)(uintptr_t)given, lines = block / LINE;
    const uint64_t *mine = blocks + (own ? me : me % groups) * block / sizeof *blocks;
    uint64_t random = me + 1, sum = 0;
    pthread_barrier_wait(&filled);
    if (me == 0)
        NEARMISS_MARK(1);
    pthread_barrier_wait(&filled);
    for (uint64_t n = 0; n < reads; n++)
        sum += mine[(subject_random(&random) ^ (sum & 1)) % lines * (LINE / sizeof *blocks)];
    sums[me] = sum;
    pthread_barrier_wait(&filled);
    if (me == 0)
        NEARMISS_MARK(2);
    return NULL;
}

int main(int argc, char **argv) {
    const struct subject_option options[] = {
        {"threads", "threads in all", &threads, 0},
        {"groups", "groups; thread n is of group n modulo so many", &groups, 0},
        {"block", "bytes of a block", &block, 0},
        {"reads", "reads of each thread", &reads, 0},
        {"own", "each thread has a block of its own", &own, 1},
        {0},
    };
    subject_options(argc, argv, "Threads in groups; each group reads one block over and over.", options);
    if (!threads || threads > MOST_THREADS || !groups || groups > threads || block < LINE || block % LINE)
        subject_fail(argv[0], "--threads is 1 to 64, --groups 1 to --threads, --block a multiple of 64");
    blocks = subject_memory(argv[0], 4096, (own ? threads : groups) * block);
    for (uint64_t i = 0; i < (own ? threads : groups) * block / sizeof *blocks; i++)
        blocks[i] = i * 7;
    pthread_barrier_init(&filled, NULL, (unsigned)threads);
    pthread_t others[MOST_THREADS];
    double begun = subject_now_ns();
    for (uint64_t i = 1; i < threads; i++)
        pthread_create(&others[i], NULL, work, (void *)(uintptr_t)i);
    work(NULL);
    uint64_t sum = sums[0];
    for (uint64_t i = 1; i < threads; i++) {
        pthread_join(others[i], NULL);
        sum += sums[i];
    }
    double ns = subject_now_ns() - begun;
    printf("groups: threads=%llu groups=%llu block=%llu reads=%llu own=%llu sum=%llu ns_per_read=%.2f\n",
           (unsigned long long)threads, (unsigned long long)groups, (unsigned long long)block,
           (unsigned long long)reads, (unsigned long long)own, (unsigned long long)sum,
           ns / (double)(threads * reads));
    return 0;
}
