// SPDX-License-Identifier: MIT OR Apache-2.0
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#define THREADS 4
#define ROUNDS 4000000

struct meter {
	volatile uint64_t count;
	volatile uint64_t total;
};

static struct meter *new_meter(void)
{
#ifdef TWIN
	struct meter *m = aligned_alloc(64, 64);
#else
	struct meter *m = malloc(sizeof *m);
#endif
	m->count = m->total = 0;
	return m;
}

static uint64_t mix(uint64_t x, int n)
{
	while (n--)
		x = x * 6364136223846793005u + 1442695040888963407u;
	return x;
}

static void *measure(void *arg)
{
	struct meter *m = arg;
	uint64_t x = 11;
	for (int i = 0; i < ROUNDS; i++) {
		x = mix(x, 16);
		m->count++;
		m->total += x >> 40;
	}
	return NULL;
}

int main(void)
{
	pthread_t t[THREADS];
	struct meter *m[THREADS];
	uint64_t sum = 0;
	for (int i = 0; i < THREADS; i++)
		m[i] = new_meter();
	for (int i = 0; i < THREADS; i++)
		pthread_create(&t[i], NULL, measure, m[i]);
	for (int i = 0; i < THREADS; i++) {
		pthread_join(t[i], NULL);
		sum += m[i]->total;
		free(m[i]);
	}
	printf("%lx\n", (unsigned long)sum);
	return 0;
}
