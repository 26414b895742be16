// SPDX-License-Identifier: MIT OR Apache-2.0
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#define ROUNDS 8000000

struct lane {
	volatile uint64_t in;
	char pad[48];
	volatile uint64_t out;
};

static uint64_t mix(uint64_t x, int n)
{
	while (n--)
		x = x * 6364136223846793005u + 1442695040888963407u;
	return x;
}

static void *move(void *arg)
{
	struct lane *l = arg;
	uint64_t x = 3;
	for (int i = 0; i < ROUNDS; i++) {
		x = mix(x, 16);
		l->in += x & 7;
		l->out += x >> 61;
	}
	return NULL;
}

int main(void)
{
	pthread_t t[2];
#ifdef TWIN
	char *block = aligned_alloc(64, 64 * 64);
	struct lane *lanes = (struct lane *)block;
#else
	char *block = malloc(64 * 64 + 16);
	struct lane *lanes = (struct lane *)(block + 16);
#endif
	for (int i = 0; i < 2; i++) {
		lanes[i].in = lanes[i].out = 0;
		pthread_create(&t[i], NULL, move, &lanes[i]);
	}
	for (int i = 0; i < 2; i++)
		pthread_join(t[i], NULL);
	printf("%lu\n", (unsigned long)(lanes[0].in + lanes[1].out));
	free(block);
	return 0;
}
