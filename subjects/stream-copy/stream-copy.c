/* SPDX-License-Identifier: MIT OR Apache-2.0
 *
 * A copy that pollutes, as write() to a file does: between two walks over a table, a small record is copied again and
 * again into a large buffer. The buffer's lines are not used again soon, yet they evict the table; with --non-temporal
 * they go past the caches and the table stays. With --calls two functions call memcpy instead: what keep_records copies is
 * not used again soon, what read_records copies is read at once. */
#include "subject.h"

#if defined(__x86_64__)
#include <emmintrin.h>
#endif

enum { LINE = 64, RECORD = 4096 };

/* A line of the table: a list, so that the walk shows what a miss costs. */
struct entry {
    struct entry *next;
    uint64_t value;
    char pad[LINE - 16];
};

/* Copies with stores that leave the caches alone, as the paper's kernel patch does: a fence at the end. */
static void copy_past_the_caches(char *to, const char *from, size_t bytes) {
#if defined(__x86_64__)
    for (size_t i = 0; i < bytes; i += 8)
        _mm_stream_si64((long long *)(to + i), *(const long long *)(from + i % RECORD));
    _mm_sfence();
#else
    for (size_t i = 0; i < bytes; i += RECORD)
        memcpy(to + i, from, RECORD);
#endif
}

static __attribute__((noinline)) uint64_t walk_table(const struct entry *entry, uint64_t entries) {
    uint64_t sum = 0;
    for (; entries > 0; entries--, entry = entry->next)
        sum += entry->value;
    return sum;
}

static __attribute__((noinline)) void copy(char *to, const char *from, size_t bytes, int past) {
    if (past)
        copy_past_the_caches(to, from, bytes);
    else
        for (size_t i = 0; i < bytes; i += 8)
            *(volatile uint64_t *)(to + i) = *(const uint64_t *)(from + i % RECORD);
}

/* A record at a time; its size is an option, or the compiler would copy it without a call. */
static __attribute__((noinline)) void keep_records(char *to, const char *from, size_t bytes, size_t record) {
    for (size_t i = 0; i < bytes; i += record)
        memcpy(to + i, from, record);
}

static __attribute__((noinline)) uint64_t read_records(char *to, const char *from, size_t bytes, size_t record) {
    uint64_t sum = 0;
    for (size_t i = 0; i < bytes; i += record) {
        memcpy(to + i, from, record);
        for (size_t at = 0; at < record; at += 8)
            sum += *(const uint64_t *)(to + i + at);
    }
    return sum;
}

int main(int argc, char **argv) {
    uint64_t copied = 8 << 20, table_bytes = 512 << 10, rounds = 20, past = 0, calls = 0, read = 0, record = RECORD;
    const struct subject_option options[] = {
        {"copy", "bytes copied a round", &copied, 0},
        {"table", "bytes of the table that is used between copies", &table_bytes, 0},
        {"rounds", "rounds", &rounds, 0},
        {"non-temporal", "copy past the caches", &past, 1},
        {"calls", "copy by memcpy: --copy bytes that are kept, --read bytes that are read at once", &calls, 1},
        {"read", "bytes copied a round and read at once", &read, 0},
        {"record", "bytes a call of memcpy", &record, 0},
        {0},
    };
    subject_options(argc, argv, "A large copy evicts a small table that is needed again.", options);
    if (record < LINE || record > (64 << 20))
        subject_fail(argv[0], "--record needs 64 to 64M");
    copied -= copied % (calls ? record : RECORD);
    read -= read % record;
    if ((copied < RECORD && !calls) || table_bytes < LINE)
        subject_fail(argv[0], "--copy needs at least 4K, --table at least 64");
    if (read && !calls)
        subject_fail(argv[0], "--read needs --calls");
    char *from = subject_memory(argv[0], RECORD, calls ? record : RECORD), *to = subject_memory(argv[0], 4096, copied + LINE);
    char *soon = subject_memory(argv[0], 4096, read + LINE);
    struct entry *table = subject_memory(argv[0], 4096, table_bytes);
    uint64_t entries = table_bytes / LINE, seed = 1;
    /* Sattolo's shuffle of the successors: one cycle through all entries. */
    for (uint64_t i = 0; i < entries; i++)
        table[i] = (struct entry){.next = &table[i], .value = i};
    for (uint64_t i = entries - 1; i > 0; i--) {
        uint64_t j = subject_random(&seed) % i;
        struct entry *held = table[i].next;
        table[i].next = table[j].next;
        table[j].next = held;
    }
    memset(from, 1, calls ? record : RECORD);
    uint64_t sum = 0;
    double walking = 0, start = subject_now_ns();
    for (uint64_t r = 0; r < rounds; r++) {
        if (calls) {
            keep_records(to, from, copied, record);
            sum += read_records(soon, from, read, record);
        } else {
            copy(to, from, copied, past != 0);
        }
        double before = subject_now_ns();
        sum += walk_table(table, entries);
        walking += subject_now_ns() - before;
    }
    double total = subject_now_ns() - start;
    uint64_t lines = rounds * entries;
    printf("stream-copy: rounds=%llu copied=%llu table=%llu non_temporal=%llu sum=%llu ns_per_table_line=%.2f gb_per_s=%.2f us_per_round=%.1f\n",
           (unsigned long long)rounds, (unsigned long long)copied, (unsigned long long)table_bytes, (unsigned long long)past,
           (unsigned long long)sum, lines ? walking / lines : 0, total > walking ? rounds * (copied + read) / (total - walking) : 0,
           rounds ? total / rounds / 1000 : 0);
    return 0;
}
