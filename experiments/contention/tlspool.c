// SPDX-License-Identifier: MIT OR Apache-2.0
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#define THREADS 4
#define ROUNDS 900000

struct context {
	volatile uint64_t seed;
	volatile uint64_t calls;
	volatile uint64_t carry;
	volatile uint64_t depth;
};

#ifdef TWIN
#define STRIDE 64
#else
#define STRIDE sizeof(struct context)
#endif

static char *pool;
static __thread struct context *self;

static void step(void)
{
	uint64_t x = self->seed;
	self->depth++;
	for (int k = 0; k < 150; k++)
		x = x * 6364136223846793005u + 1442695040888963407u;
	self->seed = x;
	self->calls++;
	self->carry ^= x;
	self->depth--;
}

static void *run(void *arg)
{
	self = (struct context *)(pool + (uintptr_t)arg * STRIDE);
	self->seed = (uintptr_t)arg;
	for (int i = 0; i < ROUNDS; i++)
		step();
	return (void *)(uintptr_t)self->carry;
}

int main(void)
{
	pthread_t t[THREADS];
	uint64_t sum = 0;
	pool = aligned_alloc(64, THREADS * 64);
	for (int i = 0; i < THREADS * 64; i++)
		pool[i] = 0;
	for (uintptr_t i = 0; i < THREADS; i++)
		pthread_create(&t[i], NULL, run, (void *)i);
	for (int i = 0; i < THREADS; i++) {
		void *r;
		pthread_join(t[i], &r);
		sum ^= (uintptr_t)r;
	}
	printf("%lx\n", (unsigned long)sum);
	free(pool);
	return 0;
}
