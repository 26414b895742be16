// SPDX-License-Identifier: MIT OR Apache-2.0
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>

#define ROUNDS 8000000

static uint64_t mix(uint64_t x, int n)
{
	while (n--)
		x = x * 6364136223846793005u + 1442695040888963407u;
	return x;
}

static void integrate(volatile uint64_t *into, uint64_t seed)
{
#ifdef TWIN
	volatile uint64_t own = 0;
	volatile uint64_t *sum = &own;
#else
	volatile uint64_t *sum = into;
#endif
	for (int i = 0; i < ROUNDS; i++) {
		seed = mix(seed, 16);
		*sum += seed >> 56;
	}
#ifdef TWIN
	*into = own;
#endif
}

static void *child(void *arg)
{
	integrate(arg, 2);
	return NULL;
}

int main(void)
{
	volatile uint64_t part[2] = {0, 0};
	pthread_t t;
	pthread_create(&t, NULL, child, (void *)&part[1]);
	integrate(&part[0], 1);
	pthread_join(t, NULL);
	printf("%lu\n", (unsigned long)(part[0] + part[1]));
	return 0;
}
