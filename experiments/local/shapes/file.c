/* SPDX-License-Identifier: MIT OR Apache-2.0
 *
 * A file that a thread writes on one node, so that its pages lie there, and a thread of another node reads over and over,
 * by a mapping or with --calls by read(2). With --near both run on one node. */
#include "subject.h"
#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

static uint64_t bytes = 2 << 20, rounds = 6, near, calls;
static int file;
static uint64_t sum;

static void *reads(void *nothing) {
    (void)nothing;
    subject_pin("file", near ? 1 : 2);
    static unsigned char piece[16384];
    unsigned char *all = calls ? NULL : mmap(NULL, bytes, PROT_READ, MAP_SHARED, file, 0);
    if (all == MAP_FAILED)
        subject_fail("file", "cannot map the file");
    for (uint64_t round = 0; round < rounds; round++)
        for (uint64_t at = 0; at < bytes; at += calls ? sizeof piece : 32) {
            if (!calls)
                sum += all[at];
            else if (pread(file, piece, sizeof piece, (off_t)at) > 0)
                sum += piece[at % sizeof piece];
        }
    return NULL;
}

int main(int argc, char **argv) {
    const struct subject_option options[] = {
        {"bytes", "of the file", &bytes, 0},
        {"rounds", "how often it is read", &rounds, 0},
        {"calls", "by read(2)", &calls, 1},
        {"near", "read on the node where it was written", &near, 1},
        {0},
    };
    subject_options(argc, argv, "A file is written on one node and read on another one.", options);
    cpu_set_t allowed;
    sched_getaffinity(0, sizeof allowed, &allowed);
    subject_pin(argv[0], 0);
    FILE *nameless = tmpfile();
    if (!nameless)
        subject_fail(argv[0], "cannot make a file");
    file = fileno(nameless);
    static unsigned char piece[4096];
    memset(piece, 7, sizeof piece);
    for (uint64_t at = 0; at < bytes; at += sizeof piece)
        if (write(file, piece, sizeof piece) != sizeof piece)
            subject_fail(argv[0], "cannot write the file");
    sched_setaffinity(0, sizeof allowed, &allowed);
    pthread_t reader;
    pthread_create(&reader, NULL, reads, NULL);
    pthread_join(reader, NULL);
    printf("file: sum=%llu\n", (unsigned long long)sum);
    return 0;
}
