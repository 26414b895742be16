// SPDX-License-Identifier: MIT OR Apache-2.0
#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>

#define THREADS 4
#define ROUNDS 4000000

struct tally {
	atomic_ulong packets;
	atomic_ulong drops;
}
#ifdef TWIN
__attribute__((aligned(64)))
#endif
;

static struct tally tallies[THREADS] __attribute__((aligned(64)));

static uint64_t mix(uint64_t x, int n)
{
	while (n--)
		x = x * 6364136223846793005u + 1442695040888963407u;
	return x;
}

static void *count(void *arg)
{
	struct tally *t = arg;
	uint64_t x = (uintptr_t)(t - tallies) + 1;
	for (int i = 0; i < ROUNDS; i++) {
		x = mix(x, 16);
		atomic_fetch_add_explicit(&t->packets, 1, memory_order_relaxed);
		if (x >> 61 == 0)
			atomic_fetch_add_explicit(&t->drops, 1, memory_order_relaxed);
	}
	return NULL;
}

int main(void)
{
	pthread_t t[THREADS];
	unsigned long sum = 0;
	for (int i = 0; i < THREADS; i++)
		pthread_create(&t[i], NULL, count, &tallies[i]);
	for (int i = 0; i < THREADS; i++) {
		pthread_join(t[i], NULL);
		sum += tallies[i].packets + tallies[i].drops;
	}
	printf("%lu\n", sum);
	return 0;
}
