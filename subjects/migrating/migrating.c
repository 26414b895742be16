/* SPDX-License-Identifier: MIT OR Apache-2.0
 *
 * One thread that updates entries of a table and moves itself to the next CPU after every so many updates. The table is
 * the thread's alone, so nothing is shared, even if another CPU touched it before. With --stay the thread moves to its
 * own CPU instead: the same calls, no migration. */
#include "subject.h"

int main(int argc, char **argv) {
    uint64_t updates = 16000000, every = 200000, entries = 32768, stay = 0;
    const struct subject_option options[] = {
        {"updates", "updates of a random entry", &updates, 0},
        {"every", "updates between two moves", &every, 0},
        {"entries", "entries of 8 bytes", &entries, 0},
        {"stay", "stay on the first CPU", &stay, 1},
        {0},
    };
    subject_options(argc, argv, "One thread moves from CPU to CPU and takes its table along.", options);
    if (!entries || !every)
        subject_fail(argv[0], "--entries and --every are 1 at least");
    cpu_set_t allowed;
    sched_getaffinity(0, sizeof allowed, &allowed);
    const int cpus = CPU_COUNT(&allowed);
    /* The table is first touched where the thread stays, if it stays. */
    subject_pin(argv[0], 0);
    uint64_t *table = subject_memory(argv[0], 4096, entries * sizeof *table), random = 1, moves = 0, sum = 0;
    double begun = subject_now_ns();
    for (uint64_t done = 0; done < updates; done++) {
        if (done % every == 0) {
            sched_setaffinity(0, sizeof allowed, &allowed);
            subject_pin(argv[0], stay ? 0 : (unsigned)(moves % (uint64_t)cpus));
            moves++;
        }
        table[subject_random(&random) % entries] += done;
    }
    double ns = subject_now_ns() - begun;
    for (uint64_t i = 0; i < entries; i++)
        sum += table[i];
    printf("migrating: updates=%llu entries=%llu moves=%llu stay=%llu sum=%llu ns_per_update=%.2f\n",
           (unsigned long long)updates, (unsigned long long)entries, (unsigned long long)moves,
           (unsigned long long)stay, (unsigned long long)sum, updates ? ns / updates : 0);
    return 0;
}
