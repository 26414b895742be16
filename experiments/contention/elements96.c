// SPDX-License-Identifier: MIT OR Apache-2.0
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#define THREADS 4
#define ROUNDS 3000000

struct account {
	volatile uint64_t opened;
	char name[72];
	volatile uint64_t balance;
	volatile uint64_t turnover;
}
#ifdef TWIN
__attribute__((aligned(64)))
#endif
;

static uint64_t mix(uint64_t x, int n)
{
	while (n--)
		x = x * 6364136223846793005u + 1442695040888963407u;
	return x;
}

static void *book(void *arg)
{
	struct account *a = arg;
	uint64_t x = a->opened;
	for (int i = 0; i < ROUNDS; i++) {
		x = mix(x, 16);
		a->opened = x;
		a->balance += x >> 48;
		a->turnover++;
	}
	return NULL;
}

int main(void)
{
	pthread_t t[THREADS];
	size_t size = (THREADS * sizeof(struct account) + 63) / 64 * 64;
	struct account *accounts = aligned_alloc(64, size);
	uint64_t sum = 0;
	for (int i = 0; i < THREADS; i++) {
		accounts[i].opened = i;
		accounts[i].balance = 0;
		accounts[i].turnover = 0;
		pthread_create(&t[i], NULL, book, &accounts[i]);
	}
	for (int i = 0; i < THREADS; i++)
		pthread_join(t[i], NULL);
	for (int i = 0; i < THREADS; i++)
		sum += accounts[i].balance + accounts[i].turnover;
	printf("%lx\n", (unsigned long)sum);
	free(accounts);
	return 0;
}
