/* The copy and the fill against what memcpy and memset would have written: every place in a line, every length, with the
 * bytes around them; a source that ends where memory does; a source that cannot be read. Widths that the CPU lacks fall
 * back to narrower ones. */
#define _GNU_SOURCE
#include "../streams.c"
#include <setjmp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

enum { MOST = 700, ROOM = MOST + 4 * LINE_BYTES, PAGE = 4096, LARGE = 3 * PAGE + 77 };

static unsigned char source[ROOM], target[ROOM], expected[ROOM];

static void check(int good, const char *what, size_t to, size_t from, size_t bytes)
{
	if (good)
		return;
	printf("%s: target %zu, source %zu, %zu bytes\n", what, to, from, bytes);
	exit(1);
}

static void one(size_t to, size_t from, size_t bytes)
{
	memset(target, 0xee, ROOM);
	memset(expected, 0xee, ROOM);
	for (size_t i = 0; i < bytes; i++)
		expected[to + i] = source[from + i];
	stream_copy(target + to, source + from, bytes);
	check(memcmp(target, expected, ROOM) == 0, "copy", to, from, bytes);
	for (size_t i = 0; i < bytes; i++)
		expected[to + i] = (unsigned char)(bytes + to);
	stream_fill(target + to, (int)(bytes + to), bytes);
	check(memcmp(target, expected, ROOM) == 0, "fill", to, from, bytes);
}

/* The last byte of the source is the last byte before memory that cannot be read. */
static void at_the_end_of_memory(void)
{
	char *pages = mmap(NULL, 8 * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	char *to = malloc(LARGE);
	mprotect(pages + 7 * PAGE, PAGE, PROT_NONE);
	memset(pages, 7, 7 * PAGE);
	for (size_t bytes = LARGE - 2 * LINE_BYTES; bytes <= LARGE; bytes++) {
		memset(to, 0, LARGE);
		stream_copy(to, pages + 7 * PAGE - bytes, bytes);
		for (size_t i = 0; i < bytes; i++)
			check(to[i] == 7, "at the end of memory", 0, 0, bytes);
	}
}

static sigjmp_buf left;

static void leave(int signal)
{
	siglongjmp(left, signal);
}

/* Bytes written before the fault are the source's, the others are as they were, and in that order. */
static void source_that_cannot_be_read(void)
{
	char *pages = mmap(NULL, 4 * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	char *to = calloc(1, 4 * PAGE);
	memset(pages, 7, 4 * PAGE);
	mprotect(pages + 2 * PAGE, PAGE, PROT_NONE);
	signal(SIGSEGV, leave);
	if (sigsetjmp(left, 1) == 0) {
		stream_copy(to + 5, pages + 3, 3 * PAGE);
		check(0, "no fault", 5, 3, 3 * PAGE);
	}
	size_t written = 0;
	while (written < 2 * PAGE && to[5 + written] == 7)
		written++;
	check(written > PAGE, "too little before the fault", 5, 3, written);
	for (size_t i = written; i < 3 * PAGE; i++)
		check(to[5 + i] == 0, "written behind the fault", 5, 3, i);
}

int main(int argc, char **argv)
{
	unsigned width = choose_stores(argc > 1 ? (unsigned)atoi(argv[1]) : LINE_BYTES);
	for (size_t i = 0; i < ROOM; i++)
		source[i] = (unsigned char)(i * 31 + i / 256);
	for (size_t to = 0; to < LINE_BYTES; to++)
		for (size_t from = 0; from < LINE_BYTES; from += 1 + (from * 5 + to) % 9)
			for (size_t bytes = LEAST_STREAM_BYTES; bytes <= MOST; bytes += bytes < 400 ? 1 : 7)
				one(to, from, bytes);
	at_the_end_of_memory();
	source_that_cannot_be_read();
	printf("width %u\n", width);
	return 0;
}
