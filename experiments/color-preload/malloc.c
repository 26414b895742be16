/* Prints what a malloc and free of 64 bytes take, best of several rounds. Run it plainly and under
 * `nearmiss apply color`, which leaves such blocks as they are.
 * cc -O2 malloc.c && ./a.out && nearmiss apply color --blocks 128k -- ./a.out */
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

int main(void)
{
	double best = 1e9;
	for (int round = 0; round < 10; round++) {
		struct timespec from, to;
		clock_gettime(CLOCK_MONOTONIC, &from);
		for (int i = 0; i < 5000000; i++) {
			void *volatile block = malloc(64);
			free(block);
		}
		clock_gettime(CLOCK_MONOTONIC, &to);
		double ns = ((double)(to.tv_sec - from.tv_sec) * 1e9 + (double)(to.tv_nsec - from.tv_nsec)) / 5e6;
		best = ns < best ? ns : best;
	}
	printf("malloc_free_ns %.2f\n", best);
	return 0;
}
