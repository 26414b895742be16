/* Allocates blocks that glibc maps or trims, touches each page, and frees them, round after round: in the first thread
 * and, with `thread`, in another one. Prints a checksum, and whether the last round took page faults. */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

#define ROUNDS 10
#define BLOCKS 8
#define BYTES (40ul << 20)

/* An executable at a fixed address that takes malloc's has an entry of its own for it. */
static void *(*volatile allocate)(size_t) = malloc;

static long faults(void)
{
	struct rusage usage;
	getrusage(RUSAGE_SELF, &usage);
	return usage.ru_minflt;
}

static void *rounds(void *unused)
{
	(void)unused;
	unsigned long sum = 0;
	long last = 0;
	for (int round = 0; round < ROUNDS; round++) {
		char *blocks[BLOCKS];
		long before = faults();
		for (int i = 0; i < BLOCKS; i++) {
			blocks[i] = allocate(BYTES / BLOCKS + (size_t)i * 4096);
			for (size_t at = 0; at < BYTES / BLOCKS; at += 4096)
				blocks[i][at] = (char)(i + round);
			sum += (unsigned char)blocks[i][BYTES / BLOCKS / 2];
		}
		for (int i = 0; i < BLOCKS; i++)
			free(blocks[i]);
		last = faults() - before;
	}
	printf("sum %lu, %s\n", sum, last > 1000 ? "faults" : "no faults");
	return NULL;
}

int main(int count, char **words)
{
	if (count > 1 && !strcmp(words[1], "thread")) {
		pthread_t thread;
		pthread_create(&thread, NULL, rounds, NULL);
		pthread_join(thread, NULL);
	} else {
		rounds(NULL);
	}
	return 0;
}
