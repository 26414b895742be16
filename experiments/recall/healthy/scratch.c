/* SPDX-License-Identifier: MIT OR Apache-2.0
 *
 * Healthy: each round gets a buffer from the C library, works on it and frees it. The heap keeps the buffer for the
 * next round. With a third SHAPE it is mapped anew each time, but a round computes far longer than the kernel takes to
 * clear it.
 * SIZE: rounds. SHAPE: KiB of a buffer, passes over it, KiB from which the C library maps blocks. */
#include "../planted.h"

#include <malloc.h>

HOT uint64_t work_on(uint64_t *buffer, uint64_t words, uint64_t passes, uint64_t round) {
    for (uint64_t i = 0; i < words; i++)
        buffer[i] = i + round;
    for (uint64_t pass = 0; pass < passes; pass++)
        for (uint64_t i = 1; i < words; i++)
            buffer[i] = mix(buffer[i] + buffer[i - 1]);
    return buffer[words - 1];
}

HOT uint64_t one_round(uint64_t bytes, uint64_t passes, uint64_t round) {
    uint64_t *buffer = malloc(bytes);
    if (!buffer)
        planted_fail("not enough memory");
    uint64_t last = work_on(buffer, bytes / sizeof *buffer, passes, round);
    free(buffer);
    return last;
}

int main(int argc, char **argv) {
    uint64_t rounds = argument(argc, argv, 1, 1 << 20), kib = argument(argc, argv, 2, 1 << 20);
    uint64_t passes = argument(argc, argv, 3, 1 << 20), digest = 0, begun = now_ns();
    if (argc > 4)
        mallopt(M_MMAP_THRESHOLD, (int)argument(argc, argv, 4, 1 << 15) << 10);
    for (uint64_t round = 0; round < rounds; round++)
        digest = mix(digest + one_round(kib << 10, passes, round));
    return report(digest, begun);
}
