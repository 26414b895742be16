/* SPDX-License-Identifier: MIT OR Apache-2.0
 *
 * Twenty sorted runs, 32 KiB apart, are merged. Their keys are dealt out evenly, so all runs are read at the same offset,
 * and the lines that are read next lie in one set of the first level. The twin's runs are a line longer.
 *
 * SIZE: number of merges. */
#include "../recall/planted.h"

enum { RUNS = 20, KEYS = 32768 / 8, PITCH = KEYS + TWINNED * LINE / 8 };

HOT uint64_t merge(const uint64_t *runs, uint64_t *merged) {
    uint64_t next[RUNS] = {0}, written = 0;
    for (; written < RUNS * (uint64_t)KEYS; written++) {
        uint64_t least = UINT64_MAX, from = 0;
        for (uint64_t run = 0; run < RUNS; run++) {
            uint64_t key = next[run] < KEYS ? runs[run * PITCH + next[run]] : UINT64_MAX;
            from = key < least ? run : from;
            least = key < least ? key : least;
        }
        merged[written] = least;
        next[from]++;
    }
    return merged[written / 2];
}

int main(int argc, char **argv) {
    uint64_t times = argument(argc, argv, 1, 1 << 20), digest = 0;
    uint64_t *runs = memory(PAGE, RUNS * (size_t)PITCH * sizeof *runs);
    uint64_t *merged = memory(PAGE, RUNS * (size_t)KEYS * sizeof *merged);
    for (uint64_t run = 0; run < RUNS; run++)
        for (uint64_t key = 0; key < KEYS; key++)
            runs[run * PITCH + key] = key * RUNS + (run + key * 7) % RUNS;
    uint64_t begun = now_ns();
    for (uint64_t i = 0; i < times; i++)
        digest = mix(digest + merge(runs, merged));
    return report(digest, begun);
}
