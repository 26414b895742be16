// SPDX-License-Identifier: MIT OR Apache-2.0
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>

#define ROUNDS 150000000

static struct {
	volatile int stop;
	volatile int verbose;
#ifdef TWIN
	char pad[56];
#endif
	volatile uint64_t produced;
} state __attribute__((aligned(64)));

static void *produce(void *arg)
{
	(void)arg;
	for (uint64_t i = 1; i <= ROUNDS; i++)
		state.produced = i;
	return NULL;
}

static void *check(void *arg)
{
	uint64_t *sum = arg;
	uint64_t s = 0;
	for (uint64_t i = 0; i < ROUNDS && !state.stop; i++)
		s = (s ^ i) * 3 + state.verbose;
	*sum = s;
	return NULL;
}

int main(void)
{
	pthread_t a, b;
	uint64_t sum;
	pthread_create(&a, NULL, produce, NULL);
	pthread_create(&b, NULL, check, &sum);
	pthread_join(a, NULL);
	pthread_join(b, NULL);
	printf("%lx %lu\n", (unsigned long)sum, (unsigned long)state.produced);
	return 0;
}
