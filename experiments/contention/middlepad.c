// SPDX-License-Identifier: MIT OR Apache-2.0
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>

#define ROUNDS 100000000

struct shard {
	volatile uint64_t hits;
	char pad[48];
	volatile uint64_t misses;
};

static struct {
	uint64_t shards_used;
#ifdef TWIN
	char pad[56];
#endif
	struct shard shard[2];
} lru __attribute__((aligned(64)));

static void *lookup(void *arg)
{
	struct shard *s = arg;
	for (uint64_t i = 0; i < ROUNDS; i++) {
		s->hits += i & 3;
		s->misses++;
	}
	return NULL;
}

int main(void)
{
	pthread_t t[2];
	lru.shards_used = 2;
	for (int i = 0; i < 2; i++)
		pthread_create(&t[i], NULL, lookup, &lru.shard[i]);
	for (int i = 0; i < 2; i++)
		pthread_join(t[i], NULL);
	printf("%lu\n", (unsigned long)(lru.shard[0].hits + lru.shard[1].misses));
	return 0;
}
