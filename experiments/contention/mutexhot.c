// SPDX-License-Identifier: MIT OR Apache-2.0
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>

#define ROUNDS 6000000

static struct {
	pthread_mutex_t lock;
#ifdef TWIN
	char pad[88];
#endif
	volatile uint64_t polls;
} cache __attribute__((aligned(64))) = { .lock = PTHREAD_MUTEX_INITIALIZER };

static volatile uint64_t entries __attribute__((aligned(64)));

static uint64_t mix(uint64_t x, int n)
{
	while (n--)
		x = x * 6364136223846793005u + 1442695040888963407u;
	return x;
}

static void *insert(void *arg)
{
	uint64_t x = 5;
	for (int i = 0; i < ROUNDS; i++) {
		x = mix(x, 16);
		pthread_mutex_lock(&cache.lock);
		entries += x >> 62;
		pthread_mutex_unlock(&cache.lock);
	}
	return arg;
}

static void *poll(void *arg)
{
	uint64_t x = 6;
	for (int i = 0; i < 2 * ROUNDS; i++) {
		x = mix(x, 16);
		cache.polls += x & 1;
	}
	return arg;
}

int main(void)
{
	pthread_t a, b;
	pthread_create(&a, NULL, insert, NULL);
	pthread_create(&b, NULL, poll, NULL);
	pthread_join(a, NULL);
	pthread_join(b, NULL);
	printf("%lu %lu\n", (unsigned long)entries, (unsigned long)cache.polls);
	return 0;
}
