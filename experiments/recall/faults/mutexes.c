/* SPDX-License-Identifier: MIT OR Apache-2.0
 *
 * An array of mutexes, one for each shard of some data, and each thread works on a shard of its own. No mutex is ever
 * contended, but mutexes of 40 bytes share lines. The twin's mutexes have lines of their own.
 *
 * SIZE: thousands of times that each thread locks.
 *
 *: kind = "sharing"
 *: names = ["shard_locks"]
 *: reach = "inside"
 *: traced = 250
 *: measured = 4000
 */
#include "../planted.h"

enum { SHARDS = 2 };

static alignas(2 * LINE) struct {
    ALONE pthread_mutex_t lock;
} shard_locks[SHARDS];

static struct {
    alignas(2 * LINE) uint64_t value;
} shard[SHARDS];

HOT void update_shard(unsigned self, uint64_t times) {
    for (uint64_t i = 0; i < times; i++) {
        pthread_mutex_lock(&shard_locks[self].lock);
        shard[self].value = mix(shard[self].value + i);
        pthread_mutex_unlock(&shard_locks[self].lock);
    }
}

int main(int argc, char **argv) {
    uint64_t times = argument(argc, argv, 1, 1 << 30) * 1000;
    for (int i = 0; i < SHARDS; i++)
        pthread_mutex_init(&shard_locks[i].lock, NULL);
    uint64_t begun = now_ns();
    on_threads(SHARDS, update_shard, times);
    return report(shard[0].value + mix(shard[1].value), begun);
}
