// SPDX-License-Identifier: MIT OR Apache-2.0
#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>

#define ROUNDS 6000000

static atomic_ulong requests __attribute__((aligned(64)));

static uint64_t mix(uint64_t x, int n)
{
	while (n--)
		x = x * 6364136223846793005u + 1442695040888963407u;
	return x;
}

static void *serve(void *arg)
{
	uint64_t x = (uintptr_t)arg;
#ifdef TWIN
	volatile unsigned long mine = 0;
#endif
	for (int i = 0; i < ROUNDS; i++) {
		x = mix(x, 16);
#ifdef TWIN
		mine += 1 + (x >> 63);
#else
		atomic_fetch_add_explicit(&requests, 1 + (x >> 63), memory_order_relaxed);
#endif
	}
#ifdef TWIN
	atomic_fetch_add_explicit(&requests, mine, memory_order_relaxed);
#endif
	return NULL;
}

int main(void)
{
	pthread_t a, b;
	pthread_create(&a, NULL, serve, (void *)1);
	pthread_create(&b, NULL, serve, (void *)2);
	pthread_join(a, NULL);
	pthread_join(b, NULL);
	printf("%lu\n", (unsigned long)requests);
	return 0;
}
