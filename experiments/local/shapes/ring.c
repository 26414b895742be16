/* SPDX-License-Identifier: MIT OR Apache-2.0
 *
 * A ring of entries between a writer and a reader on another node, handed over entry by entry, over and over: on either
 * node, it is remote to one of the two. With --near both run on one node. With --small the
 * ring fits the writer's cache. */
#include "subject.h"
#include <stdatomic.h>

enum { LINE = 64 };

struct entry {
    uint64_t words[LINE / 8];
};

static uint64_t entries = 8192, laps = 12, near, small;
static struct entry *ring;
static _Alignas(128) _Atomic uint64_t written;
static _Alignas(128) _Atomic uint64_t seen;

static void *writes(void *nothing) {
    (void)nothing;
    subject_pin("ring", 0);
    for (uint64_t i = 0; i < laps * entries; i++) {
        while (i - atomic_load_explicit(&seen, memory_order_acquire) >= entries)
            sched_yield();
        for (unsigned word = 0; word < LINE / 8; word++)
            ring[i % entries].words[word] = i + word;
        atomic_store_explicit(&written, i + 1, memory_order_release);
    }
    return NULL;
}

static void *reads(void *sum) {
    subject_pin("ring", near ? 1 : 2);
    for (uint64_t i = 0; i < laps * entries; i++) {
        while (atomic_load_explicit(&written, memory_order_acquire) <= i)
            sched_yield();
        for (unsigned word = 0; word < LINE / 8; word++)
            *(uint64_t *)sum += ring[i % entries].words[word];
        atomic_store_explicit(&seen, i + 1, memory_order_release);
    }
    return NULL;
}

int main(int argc, char **argv) {
    const struct subject_option options[] = {
        {"entries", "entries of 64 bytes", &entries, 0},
        {"laps", "how often the ring is filled", &laps, 0},
        {"near", "both threads on one node", &near, 1},
        {"small", "a ring of 1,024 entries", &small, 1},
        {0},
    };
    subject_options(argc, argv, "A ring between a writer and a reader of another node.", options);
    if (small) {
        laps *= entries / 1024;
        entries = 1024;
    }
    cpu_set_t allowed;
    sched_getaffinity(0, sizeof allowed, &allowed);
    subject_pin(argv[0], 0);
    ring = subject_memory(argv[0], 4096, entries * sizeof *ring);
    sched_setaffinity(0, sizeof allowed, &allowed);
    pthread_t writer, reader;
    uint64_t sum = 0;
    pthread_create(&writer, NULL, writes, NULL);
    pthread_create(&reader, NULL, reads, &sum);
    pthread_join(writer, NULL);
    pthread_join(reader, NULL);
    printf("ring: sum=%llu\n", (unsigned long long)sum);
    return 0;
}
