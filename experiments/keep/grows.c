/* SPDX-License-Identifier: MIT OR Apache-2.0
 *
 * Does not gain: two logs grow in turns to 48 MiB each, and nothing is freed. Each is a mapping that realloc extends
 * without a copy; on the heap each lies in the other's way. */
#include "work.h"

enum { FIRST = 1 << 20, LAST = 48 << 20, LOGS = 2 };

struct log {
    uint64_t *words;
    size_t used, room;
};

static void append(struct log *log, uint64_t word)
{
    if (log->used == log->room) {
        log->room += log->room ? log->room / 4 : FIRST / sizeof word;
        log->words = (uint64_t *)allocated(realloc(log->words, log->room * sizeof word));
    }
    log->words[log->used++] = word;
}

int main(int argc, char **argv)
{
    size_t passes = amount_of_work(argc, argv, 6);
    static struct log logs[LOGS];
    uint64_t checksum = 0;
    for (size_t word = 0; word < LAST / sizeof(uint64_t); word++)
        for (size_t log = 0; log < LOGS; log++)
            append(&logs[log], word * (log + 3));
    for (size_t pass = 0; pass < passes; pass++)
        for (size_t log = 0; log < LOGS; log++)
            for (size_t word = 0; word < logs[log].used; word++)
                checksum += logs[log].words[word] ^ checksum >> 13;
    return print_checksum(mix(checksum));
}
