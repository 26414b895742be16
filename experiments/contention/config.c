// SPDX-License-Identifier: MIT OR Apache-2.0
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>

#define THREADS 4
#define ROUNDS 6000000

struct config {
	volatile uint32_t limit;
	volatile uint32_t scale;
	volatile uint32_t mode;
#ifdef TWIN
	volatile uint64_t served __attribute__((aligned(64)));
#else
	volatile uint64_t served;
#endif
};

static struct config config __attribute__((aligned(64))) = { 4000000000u, 3, 1, 0 };

static uint64_t mix(uint64_t x, int n)
{
	while (n--)
		x = x * 6364136223846793005u + 1442695040888963407u;
	return x;
}

static void *account(void *arg)
{
	uint64_t x = 9;
	for (int i = 0; i < 3 * ROUNDS; i++) {
		x = mix(x, 12);
		config.served += x >> 63;
	}
	return arg;
}

static void *serve(void *arg)
{
	uint64_t x = (uintptr_t)arg, sum = 0;
	for (int i = 0; i < ROUNDS; i++) {
		x = mix(x, 12);
		if ((uint32_t)x < config.limit)
			sum += (x >> 32) * config.scale + config.mode;
	}
	return (void *)(uintptr_t)sum;
}

int main(void)
{
	pthread_t t[THREADS];
	uint64_t sum = 0;
	pthread_create(&t[0], NULL, account, NULL);
	for (uintptr_t i = 1; i < THREADS; i++)
		pthread_create(&t[i], NULL, serve, (void *)i);
	for (int i = 0; i < THREADS; i++) {
		void *r;
		pthread_join(t[i], &r);
		sum += (uintptr_t)r;
	}
	printf("%lx %lu\n", (unsigned long)sum, (unsigned long)config.served);
	return 0;
}
