// SPDX-License-Identifier: MIT OR Apache-2.0
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>

#define BATCHES 150
#define ROUNDS 40000

#ifdef TWIN
struct part { volatile uint64_t sum; } __attribute__((aligned(64)));
#else
struct part { volatile uint64_t sum; };
#endif

static struct part parts[2] __attribute__((aligned(64)));

static uint64_t mix(uint64_t x, int n)
{
	while (n--)
		x = x * 6364136223846793005u + 1442695040888963407u;
	return x;
}

static void *batch(void *arg)
{
	struct part *p = arg;
	uint64_t x = p->sum + 1;
	for (int i = 0; i < ROUNDS; i++) {
		x = mix(x, 16);
		p->sum += x >> 32;
	}
	return NULL;
}

int main(void)
{
	for (int b = 0; b < BATCHES; b++) {
		pthread_t t[2];
		for (int i = 0; i < 2; i++)
			pthread_create(&t[i], NULL, batch, &parts[i]);
		for (int i = 0; i < 2; i++)
			pthread_join(t[i], NULL);
	}
	printf("%lx\n", (unsigned long)(parts[0].sum + parts[1].sum));
	return 0;
}
