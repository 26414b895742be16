/* Many threads, one after the other under a lock, each read a buffer at the same depth of their
 * stacks. Stacks are mapped alike, so that the buffers share a few cache sets.
 * equal-stacks [THREADS [ROUNDS]]; prints ns a line read. */
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#define MOST_THREADS 1024
#define LINES 4

static pthread_barrier_t ready, done;
static volatile uint64_t *buffers[MOST_THREADS];

static void *hold(void *argument)
{
	volatile uint64_t buffer[LINES * 8] __attribute__((aligned(64)));
	for (int i = 0; i < LINES * 8; i++)
		buffer[i] = 1;
	buffers[(uintptr_t)argument] = buffer;
	pthread_barrier_wait(&ready);
	pthread_barrier_wait(&done);
	return NULL;
}

int main(int argc, char **argv)
{
	int threads = argc > 1 ? atoi(argv[1]) : 64, rounds = argc > 2 ? atoi(argv[2]) : 200000;
	pthread_t handles[MOST_THREADS];
	if (threads < 1 || threads > MOST_THREADS || rounds < 1)
		return 2;
	pthread_barrier_init(&ready, NULL, (unsigned)threads + 1);
	pthread_barrier_init(&done, NULL, (unsigned)threads + 1);
	for (intptr_t i = 0; i < threads; i++)
		if (pthread_create(&handles[i], NULL, hold, (void *)i))
			return 1;
	pthread_barrier_wait(&ready);
	uint64_t sum = 0;
	struct timespec from, to;
	clock_gettime(CLOCK_MONOTONIC, &from);
	for (int round = 0; round < rounds; round++)
		for (int i = 0; i < threads; i++)
			for (int line = 0; line < LINES; line++)
				sum += buffers[i][line * 8];
	clock_gettime(CLOCK_MONOTONIC, &to);
	pthread_barrier_wait(&done);
	for (int i = 0; i < threads; i++)
		pthread_join(handles[i], NULL);
	double ns = (double)(to.tv_sec - from.tv_sec) * 1e9 + (double)(to.tv_nsec - from.tv_nsec);
	printf("ns_per_line %.3f\n", ns / rounds / threads / LINES);
	return sum != (uint64_t)rounds * (uint64_t)threads * LINES;
}
