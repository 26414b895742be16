/* SPDX-License-Identifier: MIT OR Apache-2.0
 *
 * Memory is mapped, touched once and given back in `grow`: the kernel's page faults on its behalf take the time.
 *
 *: names = ["grow"]
 *: size = 12
 */
#include "../planted.h"

enum { BYTES = 8 << 20 };

HOT uint64_t grow(void) {
    uint8_t *arena = mapping(BYTES);
    uint64_t sum = 0;
    madvise(arena, BYTES, MADV_NOHUGEPAGE);
    for (uint64_t at = 0; at < BYTES; at += PAGE)
        sum += arena[at] = (uint8_t)(at / PAGE);
    munmap(arena, BYTES);
    return sum;
}

int main(int argc, char **argv) {
    uint64_t times = argument(argc, argv, 1, 1 << 20), sum = 0;
    uint64_t begun = now_ns();
    for (uint64_t i = 0; i < times; i++)
        sum += grow();
    return report(sum, begun);
}
