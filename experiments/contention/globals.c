// SPDX-License-Identifier: MIT OR Apache-2.0
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>

#define ROUNDS 200000000

#ifdef TWIN
#define OWN_LINE __attribute__((aligned(64)))
#else
#define OWN_LINE
#endif

/* gcc emits them in the other order: the last one begins the line. */
volatile uint64_t bytes_received OWN_LINE = 1;
volatile uint64_t bytes_sent OWN_LINE = 1;
volatile uint64_t after __attribute__((aligned(64))) = 1;

static void *receive(void *arg)
{
	for (int i = 0; i < ROUNDS; i++)
		bytes_received += i & 63;
	return arg;
}

static void *transmit(void *arg)
{
	for (int i = 0; i < ROUNDS; i++)
		bytes_sent += i & 127;
	return arg;
}

int main(void)
{
	pthread_t a, b;
	pthread_create(&a, NULL, receive, NULL);
	pthread_create(&b, NULL, transmit, NULL);
	pthread_join(a, NULL);
	pthread_join(b, NULL);
	printf("%lu\n", (unsigned long)(bytes_received + bytes_sent + after));
	return 0;
}
