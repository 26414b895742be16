// SPDX-License-Identifier: MIT OR Apache-2.0
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#define ROUNDS 6000000

struct filter {
	volatile uint64_t low;
	volatile uint64_t high;
	volatile uint64_t level;
}
#ifdef TWIN
__attribute__((aligned(64)))
#endif
;

static struct filter *filters;

static uint64_t mix(uint64_t x, int n)
{
	while (n--)
		x = x * 6364136223846793005u + 1442695040888963407u;
	return x;
}

static void *run(void *arg)
{
	struct filter *f = arg;
	uint64_t x = (uintptr_t)(f - filters) + 7;
	for (int i = 0; i < ROUNDS; i++) {
		x = mix(x, 16);
		if (x < f->low)
			f->low = x;
		if (x > f->high)
			f->high = x;
		f->level += ((int64_t)(x - f->level)) >> 4;
	}
	return NULL;
}

int main(void)
{
	pthread_t t[2];
	filters = aligned_alloc(64, (2 * sizeof *filters + 63) / 64 * 64);
	for (int i = 0; i < 2; i++) {
		filters[i].low = UINT64_MAX;
		filters[i].high = 0;
		filters[i].level = 0;
		pthread_create(&t[i], NULL, run, &filters[i]);
	}
	for (int i = 0; i < 2; i++)
		pthread_join(t[i], NULL);
	printf("%lx\n", (unsigned long)(filters[0].level ^ filters[1].level));
	free(filters);
	return 0;
}
