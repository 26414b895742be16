// SPDX-License-Identifier: MIT OR Apache-2.0
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>

#define ROUNDS 100000000
#define SLOTS 1024

#ifdef TWIN
#define FIRST 8
#define STEP 1
#else
#define FIRST 1
#define STEP 2
#endif

static volatile uint64_t events[SLOTS] __attribute__((aligned(64)));

static void *record(void *arg)
{
	uint64_t me = (uintptr_t)arg;
	for (uint64_t i = 0; i < ROUNDS / 8; i++) {
		volatile uint64_t *slot = &events[i * 16 % SLOTS + me * FIRST];
		for (int k = 0; k < 8; k++)
			slot[k * STEP] += i;
	}
	return NULL;
}

int main(void)
{
	pthread_t a, b;
	uint64_t sum = 0;
	pthread_create(&a, NULL, record, (void *)0);
	pthread_create(&b, NULL, record, (void *)1);
	pthread_join(a, NULL);
	pthread_join(b, NULL);
	for (int i = 0; i < SLOTS; i++)
		sum += events[i];
	printf("%lx\n", (unsigned long)sum);
	return 0;
}
