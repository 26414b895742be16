// SPDX-License-Identifier: MIT OR Apache-2.0
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>

#define ROUNDS 100000000

struct session {
	volatile uint64_t packets;
	char peer[56];
	volatile uint64_t bytes;
}
#ifdef TWIN
__attribute__((aligned(128)))
#endif
;

static struct session sessions[2] __attribute__((aligned(128)));

static void *receive(void *arg)
{
	struct session *s = arg;
	for (int i = 0; i < ROUNDS; i++) {
		s->packets++;
		s->bytes += i & 1023;
	}
	return NULL;
}

int main(void)
{
	pthread_t t[2];
	for (int i = 0; i < 2; i++)
		pthread_create(&t[i], NULL, receive, &sessions[i]);
	for (int i = 0; i < 2; i++)
		pthread_join(t[i], NULL);
	printf("%lu\n", (unsigned long)(sessions[0].bytes + sessions[1].packets));
	return 0;
}
