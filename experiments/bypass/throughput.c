/* How fast one call of memcpy copies: each call takes the next piece of a source and of a target. Both are far larger
 * than the caches; with a source of one piece, the source stays in them. */
#define _GNU_SOURCE
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>

static double now(void)
{
	struct timespec at;
	clock_gettime(CLOCK_MONOTONIC, &at);
	return at.tv_sec * 1e9 + at.tv_nsec;
}

static char *memory(size_t bytes)
{
	char *all = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
	if (all == MAP_FAILED)
		exit(1);
	for (size_t i = 0; i < bytes; i += 64)
		all[i] = (char)i;
	return all;
}

__attribute__((noinline)) static void copies(char *to, const char *from, size_t piece, size_t source, size_t target, size_t count)
{
	for (size_t i = 0; i < count; i++)
		memcpy(to + i * piece % target, from + i * piece % source, piece);
}

int main(int argc, char **argv)
{
	if (argc != 5)
		return 2;
	size_t piece = strtoull(argv[1], NULL, 0), source = strtoull(argv[2], NULL, 0), target = strtoull(argv[3], NULL, 0);
	size_t total = strtoull(argv[4], NULL, 0);
	char *from = memory(source), *to = memory(target);
	copies(to, from, piece, source, target, target / piece);
	double start = now();
	copies(to, from, piece, source, target, total / piece);
	printf("gb_per_s=%.3f\n", total / piece * piece / (now() - start));
	return 0;
}
