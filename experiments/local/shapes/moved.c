/* SPDX-License-Identifier: MIT OR Apache-2.0
 *
 * A thread that reads and writes a table of its own, which its parent moves from node to node, as a scheduler might. With
 * --stay the parent puts the thread where it is. The thread chooses no CPU itself. */
#include "subject.h"
#include <stdatomic.h>
#include <sys/syscall.h>
#include <unistd.h>

static uint64_t entries = 131072, updates = 600000, every = 100000, stay;
static _Atomic uint64_t done, allowed_until;
static _Atomic int worker;

static void *work(void *sum) {
    worker = (int)syscall(SYS_gettid);
    uint64_t random = 1, *table = NULL;
    for (uint64_t i = 0; i < updates; i++) {
        while (i >= atomic_load(&allowed_until))
            sched_yield();
        if (!table)
            table = subject_memory("moved", 4096, entries * sizeof *table);
        table[subject_random(&random) % entries] += i;
        atomic_store(&done, i + 1);
    }
    for (uint64_t i = 0; i < entries; i++)
        *(uint64_t *)sum += table[i];
    return NULL;
}

int main(int argc, char **argv) {
    const struct subject_option options[] = {
        {"entries", "entries of 8 bytes", &entries, 0},
        {"updates", "updates of a random entry", &updates, 0},
        {"every", "updates between two moves", &every, 0},
        {"stay", "the thread stays where it is", &stay, 1},
        {0},
    };
    subject_options(argc, argv, "A thread is moved from node to node by another one.", options);
    if (!entries || !every)
        subject_fail(argv[0], "--entries and --every are 1 at least");
    pthread_t thread;
    uint64_t sum = 0;
    pthread_create(&thread, NULL, work, &sum);
    while (!worker)
        sched_yield();
    for (uint64_t at = 0; at < updates; at += every) {
        cpu_set_t there;
        CPU_ZERO(&there);
        CPU_SET(!stay && at / every % 2 ? 2 : 0, &there);
        sched_setaffinity(worker, sizeof there, &there);
        atomic_store(&allowed_until, at + every);
        while (atomic_load(&done) < at + every && atomic_load(&done) < updates)
            usleep(1000);
    }
    pthread_join(thread, NULL);
    printf("moved: sum=%llu\n", (unsigned long long)sum);
    return 0;
}
