/* SPDX-License-Identifier: MIT OR Apache-2.0
 *
 * Connections lie 8 KiB apart in one pool, and `expire_connections` reads the head of each: they share a set.
 *
 *: names = ["expire_connections"]
 *: size = 3000
 */
#include "../planted.h"

enum { CONNECTIONS = 96, BYTES = 8192 };

HOT uint64_t expire_connections(const char *pool, uint64_t now) {
    uint64_t expired = 0;
    for (uint64_t i = 0; i < CONNECTIONS; i++)
        expired += *(const volatile uint64_t *)(pool + i * BYTES) < now;
    return expired;
}

int main(int argc, char **argv) {
    uint64_t visits = argument(argc, argv, 1, 1 << 20) * 1000, sum = 0;
    char *pool = memory(BYTES, CONNECTIONS * BYTES);
    for (uint64_t i = 0; i < CONNECTIONS; i++)
        *(uint64_t *)(pool + i * BYTES) = mix(i) % 1000;
    uint64_t begun = now_ns();
    for (uint64_t i = 0; i < visits / CONNECTIONS; i++)
        sum += expire_connections(pool, i % 1000);
    return report(sum, begun);
}
