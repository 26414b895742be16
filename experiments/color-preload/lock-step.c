/* Adds up several large malloc blocks element by element, all in lock-step. Mapped blocks all begin at
 * the same page offset, so that the elements of one step share a few cache sets.
 * lock-step [BLOCKS [ROUNDS]]; prints ns an element. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#define ELEMENTS (1 << 16)
#define MOST_BLOCKS 1024

int main(int argc, char **argv)
{
	int blocks = argc > 1 ? atoi(argv[1]) : 64, rounds = argc > 2 ? atoi(argv[2]) : 10;
	static uint64_t *block[MOST_BLOCKS];
	uint64_t sum = 0, expected = 0;
	if (blocks < 1 || blocks > MOST_BLOCKS || rounds < 1)
		return 2;
	for (int b = 0; b < blocks; b++) {
		block[b] = malloc(ELEMENTS * sizeof **block);
		if (!block[b])
			return 1;
		for (int i = 0; i < ELEMENTS; i++)
			expected += block[b][i] = (uint64_t)(b + i);
	}
	struct timespec from, to;
	clock_gettime(CLOCK_MONOTONIC, &from);
	for (int round = 0; round < rounds; round++)
		for (int i = 0; i < ELEMENTS; i++)
			for (int b = 0; b < blocks; b++)
				sum += block[b][i];
	clock_gettime(CLOCK_MONOTONIC, &to);
	double ns = (double)(to.tv_sec - from.tv_sec) * 1e9 + (double)(to.tv_nsec - from.tv_nsec);
	printf("ns_per_element %.3f\n", ns / rounds / ELEMENTS / blocks);
	return sum != expected * (uint64_t)rounds;
}
