// SPDX-License-Identifier: MIT OR Apache-2.0
#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>

#define TICKS 10000000

static struct {
	atomic_uint seq;
	volatile uint64_t base;
	volatile uint64_t mult;
#ifdef TWIN
	char pad[40];
#endif
	volatile uint64_t ticks;
} clk __attribute__((aligned(64)));

static uint64_t mix(uint64_t x, int n)
{
	while (n--)
		x = x * 6364136223846793005u + 1442695040888963407u;
	return x;
}

static void *tick(void *arg)
{
	uint64_t x = 1;
	for (int i = 0; i < TICKS; i++) {
		x = mix(x, 16);
		clk.ticks++;
		if (i % 1024 == 0) {
			atomic_fetch_add_explicit(&clk.seq, 1, memory_order_release);
			clk.base = x;
			clk.mult = x >> 32;
			atomic_fetch_add_explicit(&clk.seq, 1, memory_order_release);
		}
	}
	return arg;
}

static uint64_t now(void)
{
	unsigned s;
	uint64_t v;
	do {
		s = atomic_load_explicit(&clk.seq, memory_order_acquire);
		v = clk.base + clk.mult;
		atomic_thread_fence(memory_order_acquire);
	} while (s & 1 || s != atomic_load_explicit(&clk.seq, memory_order_relaxed));
	return v;
}

static void *request(void *arg)
{
	uint64_t x = 2, *seen = arg;
	for (int i = 0; i < TICKS; i++)
		x = mix(x, 16) + now();
	*seen = x;
	return NULL;
}

int main(void)
{
	pthread_t a, b;
	uint64_t seen;
	pthread_create(&a, NULL, tick, NULL);
	pthread_create(&b, NULL, request, &seen);
	pthread_join(a, NULL);
	pthread_join(b, NULL);
	printf("%lu\n", (unsigned long)clk.ticks);
	return seen == 0;
}
