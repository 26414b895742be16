/* SPDX-License-Identifier: MIT OR Apache-2.0
 *
 * Threads that each read a part of one table, at random, over and over. The first thread writes the whole table before
 * the others begin, so that all of it lies on the first thread's node. With --own each thread writes its own part first:
 * the same reads, each on its own node. With --shared every thread reads the whole table, and no node is right for it. */
#include "subject.h"
#include "nearmiss.h"

static uint64_t threads = 4, part = 1 << 20, rounds = 3, own, shared;
static uint64_t *table;
static uint64_t sums[64];
static pthread_barrier_t written;

static void write_part(uint64_t which) {
    const uint64_t entries = part / sizeof *table;
    for (uint64_t i = 0; i < entries; i++)
        table[which * entries + i] = i ^ which;
}

static void *work(void *given) {
    const uint64_t me = (uint64_t)(uintptr_t)given, line = 32 / sizeof *table;
    subject_pin("wrong-homes", (unsigned)me);
    if (own)
        write_part(me);
    pthread_barrier_wait(&written);
    if (me == 0)
        NEARMISS_MARK(1);
    pthread_barrier_wait(&written);
    const uint64_t lines = part / 32 * (shared ? threads : 1), *mine = table + (shared ? 0 : me * part / sizeof *table);
    uint64_t random = me + 1, sum = 0;
    for (uint64_t turn = 0; turn < rounds * (part / 32); turn++)
        sum += mine[subject_random(&random) % lines * line];
    sums[me] = sum;
    pthread_barrier_wait(&written);
    if (me == 0)
        NEARMISS_MARK(2);
    return NULL;
}

int main(int argc, char **argv) {
    const struct subject_option options[] = {
        {"threads", "threads, each on a CPU of its own", &threads, 0},
        {"part", "bytes that each of them reads", &part, 0},
        {"rounds", "reads of each line, on average", &rounds, 0},
        {"own", "each thread writes its part itself", &own, 1},
        {"shared", "all threads read all parts", &shared, 1},
        {0},
    };
    subject_options(argc, argv, "One thread writes a table, and threads of all nodes read it.", options);
    if (!threads || threads > 64 || part < 4096 || part % 4096)
        subject_fail(argv[0], "--threads is 1 to 64, --part a multiple of 4096");
    /* The kernel gives large pages, and one that lay in two parts would be on the node of whoever touched it first. */
    if (posix_memalign((void **)&table, 2 << 20, threads * part) != 0)
        subject_fail(argv[0], "not enough memory for that size");
    cpu_set_t allowed;
    sched_getaffinity(0, sizeof allowed, &allowed);
    subject_pin(argv[0], 0);
    for (uint64_t i = 0; i < threads && !own; i++)
        write_part(i);
    /* Threads inherit where they may run. */
    sched_setaffinity(0, sizeof allowed, &allowed);
    pthread_barrier_init(&written, NULL, (unsigned)threads);
    pthread_t others[64];
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
    printf("wrong-homes: threads=%llu part=%llu rounds=%llu own=%llu shared=%llu sum=%llu ns_per_read=%.2f\n",
           (unsigned long long)threads, (unsigned long long)part, (unsigned long long)rounds, (unsigned long long)own,
           (unsigned long long)shared, (unsigned long long)sum, ns / (double)(threads * rounds * (part / 32)));
    return 0;
}
