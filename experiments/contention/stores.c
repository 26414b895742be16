// SPDX-License-Identifier: MIT OR Apache-2.0
#include <pthread.h>
#include <stdio.h>
#include <stdint.h>

#define ROUNDS 300000000

#ifdef TWIN
struct slot { volatile uint64_t last; } __attribute__((aligned(64)));
#else
struct slot { volatile uint64_t last; };
#endif

static struct slot latest[2] __attribute__((aligned(64)));

static void *sample(void *arg)
{
	struct slot *mine = arg;
	for (uint64_t i = 1; i <= ROUNDS; i++)
		mine->last = i;
	return NULL;
}

int main(void)
{
	pthread_t t[2];
	for (int i = 0; i < 2; i++)
		pthread_create(&t[i], NULL, sample, &latest[i]);
	for (int i = 0; i < 2; i++)
		pthread_join(t[i], NULL);
	printf("%lu\n", (unsigned long)(latest[0].last + latest[1].last));
	return 0;
}
