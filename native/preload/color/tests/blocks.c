/* Checks of malloc's guarantees, on blocks that may be colored. Prints how many lines within the page the beginnings of
 * 64 large blocks use; given their size, does only that. */
#define _GNU_SOURCE
#include "check.h"
#include <errno.h>
#include <malloc.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>
#include <string.h>

static uint64_t next_random(uint64_t *state)
{
	*state ^= *state << 13;
	*state ^= *state >> 7;
	*state ^= *state << 17;
	return *state;
}

/* Keeps the compiler from knowing that two pointers are of one block. */
static void *hidden(void *p)
{
	__asm__ volatile("" : "+r"(p));
	return p;
}

static int lines_used(size_t bytes)
{
	enum { BLOCKS = 64 };
	void *blocks[BLOCKS];
	uint64_t lines = 0;
	for (int i = 0; i < BLOCKS; i++) {
		blocks[i] = malloc(bytes);
		CHECK(blocks[i] && (uintptr_t)blocks[i] % _Alignof(max_align_t) == 0);
		lines |= 1ull << ((uintptr_t)blocks[i] >> 6 & 63);
		unsigned char *block = blocks[i];
		block[0] = block[malloc_usable_size(block) - 1] = (unsigned char)i;
	}
	for (int i = 0; i < BLOCKS; i++) {
		unsigned char *block = blocks[i];
		CHECK(block[0] == i && block[malloc_usable_size(block) - 1] == i);
		free(blocks[i]);
	}
	return __builtin_popcountll(lines);
}

static void resizing(void)
{
	for (size_t from = 1; from < 3000000; from = from * 3 + 7) {
		for (size_t to = 1; to < 3000000; to = to * 2 + 4095) {
			unsigned char *p = malloc(from);
			CHECK(malloc_usable_size(p) >= from);
			for (size_t i = 0; i < from; i++)
				p[i] = (unsigned char)(i * 7);
			p = realloc(p, to);
			CHECK(p && malloc_usable_size(p) >= to);
			/* Some allocators align what cannot hold 16 bytes less. */
			CHECK(to < 16 || (uintptr_t)p % 16 == 0);
			for (size_t i = 0; i < from && i < to; i++)
				CHECK(p[i] == (unsigned char)(i * 7));
			memset(p, 1, malloc_usable_size(p));
			free(p);
		}
	}
}

static void zeros(void)
{
	for (int round = 0; round < 20; round++) {
		size_t bytes = 4096u << round % 8;
		unsigned char *dirty = malloc(bytes);
		memset(dirty, 255, bytes);
		free(dirty);
		unsigned char *p = calloc(bytes / 4, 4);
		for (size_t i = 0; i < bytes; i++)
			CHECK(p[i] == 0);
		free(p);
	}
}

static void limits(void)
{
	volatile size_t huge = SIZE_MAX;
	CHECK(malloc(huge - 100) == NULL); /* errno differs by allocator */
	CHECK(calloc(huge / 2, 3) == NULL);
	CHECK(malloc(PTRDIFF_MAX) == NULL);
	char *p = malloc(1 << 20);
	*p = 42;
	void *same = hidden(p);
	CHECK(realloc(p, huge / 2 - 4096) == NULL);
	CHECK(reallocarray(same, huge / 2, 3) == NULL && errno == ENOMEM);
	CHECK(*(char *)same == 42 && malloc_usable_size(same) >= 1 << 20);
	free(same);
	free(NULL);
	CHECK(malloc_usable_size(NULL) == 0);
	free(malloc(0));
	free(realloc(NULL, 1 << 20));
	errno = 77;
	free(malloc(1 << 20));
	CHECK(errno == 77);
	/* A block requested by its alignment has it. */
	for (size_t alignment = 64; alignment <= 1 << 18; alignment *= 2) {
		void *q;
		CHECK(posix_memalign(&q, alignment, 1 << 18) == 0 && (uintptr_t)q % alignment == 0);
		q = realloc(q, 1 << 20);
		free(q);
		/* This size: mimalloc 2.0.9 misplaces 1,024 bytes aligned to 256. */
		q = aligned_alloc(alignment, 1 << 18);
		CHECK(q && (uintptr_t)q % alignment == 0);
		free(q);
		q = memalign(alignment, 1 << 18);
		CHECK((uintptr_t)q % alignment == 0);
		free(q);
	}
	void *page = valloc(10000);
	CHECK((uintptr_t)page % 4096 == 0);
	free(page);
}

/* Threads allocate, resize and free each other's blocks; each block contains its own size. */
enum { SLOTS = 128, THREADS = 4, STEPS = 20000 };
static _Atomic(uint64_t *) slots[SLOTS];

static void verify_and_free(uint64_t *block)
{
	if (!block)
		return;
	uint64_t words = block[0];
	for (uint64_t i = 1; i < words; i += 61)
		CHECK(block[i] == (words ^ i));
	free(block);
}

static void *churn(void *seed)
{
	uint64_t state = (uintptr_t)seed * 0x9e3779b97f4a7c15ull + 1;
	for (int i = 0; i < STEPS; i++) {
		uint64_t r = next_random(&state);
		uint64_t words = 1 + (r >> 8) % (r & 1 ? 2048 : 32768);
		if (r & 2)
			words = (words + 511) & ~511ull; /* whole pages */
		uint64_t *block = r & 4 ? calloc(words, 8) : malloc(words * 8);
		CHECK(block);
		if (r & 8) {
			words = words / 2 + 1;
			block = realloc(block, words * 8);
		}
		block[0] = words;
		for (uint64_t k = 1; k < words; k += 61)
			block[k] = words ^ k;
		verify_and_free(atomic_exchange(&slots[(r >> 40) % SLOTS], block));
	}
	return NULL;
}

int main(int argc, char **argv)
{
	/* First: later the C library may serve large blocks from its heap. */
	dprintf(1, "lines %d\n", lines_used(argc > 1 ? strtoull(argv[1], NULL, 10) : 4 << 20));
	if (argc > 1)
		return 0;
	resizing();
	zeros();
	limits();
	pthread_t threads[THREADS];
	for (uintptr_t i = 0; i < THREADS; i++)
		CHECK(pthread_create(&threads[i], NULL, churn, (void *)(i + 1)) == 0);
	for (int i = 0; i < THREADS; i++)
		pthread_join(threads[i], NULL);
	for (int i = 0; i < SLOTS; i++)
		verify_and_free(slots[i]);
	return 0;
}
