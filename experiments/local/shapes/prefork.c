/* SPDX-License-Identifier: MIT OR Apache-2.0
 *
 * A parent reads in a table and forks a child for each CPU; the children read parts of it, each its own, or with --all the
 * whole. With --own each child has read in its part itself. */
#include "subject.h"
#include <sys/wait.h>
#include <unistd.h>

enum { CHILDREN = 4, LINE = 32 };

static uint64_t part = 1 << 20, rounds = 6, all, own;
static unsigned char *table;

static void child(unsigned me) {
    subject_pin("prefork", me);
    if (own)
        memset(table + me * part, 1, part);
    uint64_t random = me + 1, sum = 0;
    unsigned char *mine = table + (all ? 0 : me * part);
    for (uint64_t i = 0; i < rounds * part / LINE; i++)
        sum += mine[subject_random(&random) % (part * (all ? CHILDREN : 1) / LINE) * LINE];
    _exit(sum == UINT64_MAX);
}

int main(int argc, char **argv) {
    const struct subject_option options[] = {
        {"part", "bytes for each child", &part, 0},
        {"rounds", "reads of each line, on average", &rounds, 0},
        {"all", "each child reads the whole", &all, 1},
        {"own", "each child reads in its part", &own, 1},
        {0},
    };
    subject_options(argc, argv, "A parent reads in a table, and children on all nodes use it.", options);
    cpu_set_t allowed;
    sched_getaffinity(0, sizeof allowed, &allowed);
    subject_pin(argv[0], 0);
    if (posix_memalign((void **)&table, 2 << 20, part * CHILDREN) != 0)
        subject_fail(argv[0], "not enough memory for that size");
    if (!own)
        memset(table, 1, part * CHILDREN);
    sched_setaffinity(0, sizeof allowed, &allowed);
    for (unsigned i = 0; i < CHILDREN; i++)
        if (fork() == 0)
            child(i);
    int good = 1, status;
    while (wait(&status) > 0)
        good &= status == 0;
    printf("prefork: good=%d\n", good);
    return !good;
}
