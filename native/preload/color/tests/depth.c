/* Prints, for stacks of each size given (0: the least), the size, how far below its stack's top a thread's function begins
 * at most, and on how many lines within the page. */
#define _GNU_SOURCE
#include "check.h"
#include <limits.h>
#include <pthread.h>
#include <stdint.h>

enum { THREADS = 256 };

static uintptr_t deepest;
static uint64_t lines;

static void *note_depth(void *argument)
{
	volatile int local = 0;
	pthread_attr_t attributes;
	void *stack;
	size_t bytes;
	CHECK(pthread_getattr_np(pthread_self(), &attributes) == 0);
	CHECK(pthread_attr_getstack(&attributes, &stack, &bytes) == 0);
	pthread_attr_destroy(&attributes);
	uintptr_t depth = (uintptr_t)stack + bytes - (uintptr_t)&local;
	deepest = depth > deepest ? depth : deepest;
	lines |= 1ull << (depth >> 6 & 63);
	return argument;
}

int main(int argc, char **argv)
{
	for (int i = 1; i < argc; i++) {
		size_t bytes = strtoull(argv[i], NULL, 10);
		pthread_attr_t attributes;
		bytes = bytes ? bytes : (size_t)PTHREAD_STACK_MIN;
		pthread_attr_init(&attributes);
		CHECK(pthread_attr_setstacksize(&attributes, bytes) == 0);
		deepest = lines = 0;
		for (int n = 0; n < THREADS; n++) {
			pthread_t thread;
			CHECK(pthread_create(&thread, &attributes, note_depth, NULL) == 0);
			pthread_join(thread, NULL);
		}
		pthread_attr_destroy(&attributes);
		printf("%zu %zu %d\n", bytes, (size_t)deepest, __builtin_popcountll(lines));
	}
	return 0;
}
