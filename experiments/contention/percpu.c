// SPDX-License-Identifier: MIT OR Apache-2.0
#define _GNU_SOURCE
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>

#define THREADS 4
#define CPUS 256
#define ROUNDS 1000000

struct stat {
	atomic_ulong events;
	atomic_ulong bytes;
}
#ifdef TWIN
__attribute__((aligned(64)))
#endif
;

static struct stat stats[CPUS] __attribute__((aligned(64)));

static uint64_t mix(uint64_t x, int n)
{
	while (n--)
		x = x * 6364136223846793005u + 1442695040888963407u;
	return x;
}

static void *work(void *arg)
{
	uint64_t x = (uintptr_t)arg;
	for (int i = 0; i < ROUNDS; i++) {
		x = mix(x, 150);
		struct stat *s = &stats[sched_getcpu() % CPUS];
		atomic_fetch_add_explicit(&s->events, 1, memory_order_relaxed);
		atomic_fetch_add_explicit(&s->bytes, x >> 54, memory_order_relaxed);
	}
	return NULL;
}

int main(void)
{
	pthread_t t[THREADS];
	uint64_t sum = 0;
	for (uintptr_t i = 0; i < THREADS; i++)
		pthread_create(&t[i], NULL, work, (void *)i);
	for (int i = 0; i < THREADS; i++)
		pthread_join(t[i], NULL);
	for (int i = 0; i < CPUS; i++)
		sum += stats[i].bytes;
	printf("%lx\n", (unsigned long)sum);
	return 0;
}
