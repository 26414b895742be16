/* SPDX-License-Identifier: MIT OR Apache-2.0
 *
 * An interpreter jumps among 1,024 operations of some 140 bytes of code each, all in `interpret`: more code than the
 * first level of instructions holds.
 *
 *: names = ["interpret"]
 *: size = 400
 */
#include "../planted.h"

enum { OPERATIONS = 1024 };

/* Each operation differs from the others by its number, so the compiler folds no two. */
#define STEP(n, k) x = (x ^ ((n) * 0x9e3779b97f4a7c15u + (k))) * (2 * (n) + (k) + 1);
#define OP(n) \
    case n: \
        STEP(n, 2) STEP(n, 4) STEP(n, 6) STEP(n, 10) STEP(n, 12) STEP(n, 16) STEP(n, 18) STEP(n, 22) \
        break;
#define FOUR(n) OP(n) OP((n) + 1) OP((n) + 2) OP((n) + 3)
#define SIXTEEN(n) FOUR(n) FOUR((n) + 4) FOUR((n) + 8) FOUR((n) + 12)
#define MANY(n) SIXTEEN(n) SIXTEEN((n) + 16) SIXTEEN((n) + 32) SIXTEEN((n) + 48)
#define MORE(n) MANY(n) MANY((n) + 64) MANY((n) + 128) MANY((n) + 192)

HOT uint64_t interpret(uint64_t steps) {
    uint64_t x = 1;
    for (uint64_t i = 0; i < steps; i++)
        switch (mix(i) % OPERATIONS) {
            MORE(0) MORE(256) MORE(512) MORE(768)
        }
    return x;
}

int main(int argc, char **argv) {
    uint64_t steps = argument(argc, argv, 1, 1 << 20) * 1000;
    uint64_t begun = now_ns();
    return report(interpret(steps), begun);
}
