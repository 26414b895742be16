// SPDX-License-Identifier: MIT OR Apache-2.0
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>

#define ROUNDS 1500000

static struct {
	atomic_int lock;
#ifdef TWIN
	char pad[60];
#endif
	volatile uint64_t count;
	volatile uint64_t sum;
	volatile uint64_t low;
	volatile uint64_t high;
} table __attribute__((aligned(64)));

static uint64_t mix(uint64_t x, int n)
{
	while (n--)
		x = x * 6364136223846793005u + 1442695040888963407u;
	return x;
}

static void lock(void)
{
	int tries = 0;
	while (atomic_exchange_explicit(&table.lock, 1, memory_order_acquire))
		if (++tries == 1000) {
			sched_yield();
			tries = 0;
		}
}

static void unlock(void)
{
	atomic_store_explicit(&table.lock, 0, memory_order_release);
}

static void *update(void *arg)
{
	uint64_t x = (uintptr_t)arg;
	for (int i = 0; i < ROUNDS; i++) {
		x = mix(x, 60);
		lock();
		table.count++;
		x = mix(x, 8);
		table.sum += x >> 40;
		if (x < table.low)
			table.low = x;
		x = mix(x, 8);
		if (x > table.high)
			table.high = x;
		table.sum ^= x & 1;
		unlock();
	}
	return NULL;
}

int main(void)
{
	pthread_t a, b;
	table.low = UINT64_MAX;
	pthread_create(&a, NULL, update, (void *)1);
	pthread_create(&b, NULL, update, (void *)2);
	pthread_join(a, NULL);
	pthread_join(b, NULL);
	printf("%lu\n", (unsigned long)table.count);
	return 0;
}
