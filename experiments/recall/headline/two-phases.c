/* SPDX-License-Identifier: MIT OR Apache-2.0
 *
 * A first phase reads much in order, in `load_phase`; the second phase waits much longer, in `solve_phase`, which
 * looks into `unknowns` at random.
 *
 *: names = ["solve_phase", "unknowns"]
 *: size = 1000
 */
#include "../planted.h"

enum { WORDS = 1 << 21 };

static uint64_t unknowns[WORDS];

HOT uint64_t load_phase(void) {
    uint64_t sum = 0;
    for (uint64_t i = 0; i < WORDS; i++)
        sum += unknowns[i] = mix(i);
    return sum;
}

HOT uint64_t solve_phase(uint64_t steps) {
    uint64_t at = 0;
    for (uint64_t i = 0; i < steps; i++)
        at = mix(at + i + unknowns[at % WORDS]);
    return at;
}

int main(int argc, char **argv) {
    uint64_t steps = argument(argc, argv, 1, 1 << 20) * 1000;
    uint64_t begun = now_ns(), sum = load_phase();
    return report(sum + solve_phase(steps), begun);
}
