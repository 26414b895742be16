/* Checks of malloc's guarantees, on blocks that may lie on lines of their own. Prints how many of 200 blocks of 24
 * bytes, of two threads in turn, have a line for themselves; given an argument, does only that. */
#define _GNU_SOURCE
#include "../../color/tests/check.h"
#include <errno.h>
#include <malloc.h>
#include <pthread.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

enum { BLOCKS = 200, LINE = 64 };

static int alone(void)
{
	char *blocks[BLOCKS];
	int count = 0;
	for (int i = 0; i < BLOCKS; i++) {
		blocks[i] = malloc(24);
		CHECK(blocks[i]);
		memset(blocks[i], i, malloc_usable_size(blocks[i]));
	}
	for (int i = 0; i < BLOCKS; i++) {
		int shares = 0;
		for (int j = 0; j < BLOCKS; j++)
			shares |= i != j && (uintptr_t)blocks[i] / LINE == (uintptr_t)blocks[j] / LINE;
		count += !shares;
	}
	for (int i = 0; i < BLOCKS; i++) {
		CHECK(*(unsigned char *)blocks[i] == (unsigned char)i);
		free(blocks[i]);
	}
	return count;
}

static void resizing(void)
{
	for (size_t from = 0; from < 700; from += 13) {
		for (size_t to = 1; to < 700; to += 29) {
			unsigned char *p = malloc(from);
			CHECK(p && malloc_usable_size(p) >= from);
			for (size_t i = 0; i < from; i++)
				p[i] = (unsigned char)(i * 7);
			p = realloc(p, to);
			CHECK(p && malloc_usable_size(p) >= to && (uintptr_t)p % 16 == 0);
			for (size_t i = 0; i < from && i < to; i++)
				CHECK(p[i] == (unsigned char)(i * 7));
			memset(p, 1, malloc_usable_size(p));
			free(p);
		}
	}
	char *zeros = calloc(3, 20);
	for (int i = 0; i < 60; i++)
		CHECK(zeros[i] == 0);
	zeros = realloc(zeros, 0);
	free(zeros);
	void *volatile nothing = NULL;
	free(nothing);
	volatile size_t huge = SIZE_MAX / 2;
	errno = 0;
	CHECK(calloc(huge, 3) == NULL && errno == ENOMEM);
	CHECK(reallocarray(NULL, huge, 3) == NULL);
	void *aligned = NULL;
	CHECK(posix_memalign(&aligned, 256, 24) == 0 && (uintptr_t)aligned % 256 == 0);
	free(realloc(aligned, 30));
	free(strdup("a string of the C library's"));
}

static void *churn(void *argument)
{
	uint64_t state = (uintptr_t)argument;
	void *kept[64] = { 0 };
	for (int i = 0; i < 20000; i++) {
		state = state * 6364136223846793005u + 1442695040888963407u;
		unsigned at = state >> 40 & 63;
		kept[at] = realloc(kept[at], 1 + (state >> 50) % 300);
		CHECK(kept[at]);
		memset(kept[at], (int)at, malloc_usable_size(kept[at]));
	}
	for (int i = 0; i < 64; i++)
		free(kept[i]);
	return NULL;
}

int main(int argc, char **argv)
{
	(void)argv;
	printf("alone %d\n", alone());
	if (argc > 1)
		return 0;
	resizing();
	pthread_t threads[4];
	for (uintptr_t i = 0; i < 4; i++)
		CHECK(pthread_create(&threads[i], NULL, churn, (void *)(i + 1)) == 0);
	for (int i = 0; i < 4; i++)
		pthread_join(threads[i], NULL);
	return 0;
}
