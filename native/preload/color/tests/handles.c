/* Gives blocks of every maker to functions of the C library that were not found by their plain name; the argument
 * selects which. Behind it, the sizes. */
#define _GNU_SOURCE
#include "check.h"
#include <dlfcn.h>
#include <malloc.h>
#include <stdint.h>
#include <string.h>

enum { ROUNDS = 4 };

extern void __libc_free(void *);

static void (*release)(void *);
static void *(*resize)(void *, size_t);
static size_t (*measure)(void *);

/* Through a volatile pointer, or the compiler takes libc's functions for the plain ones. */
static void *hidden(void *block)
{
	void *volatile same = block;
	return same;
}

static void *make(int maker, size_t bytes)
{
	void *block = NULL;
	switch (maker) {
	case 0:
		return malloc(bytes);
	case 1:
		return calloc(bytes, 1);
	case 2:
		return realloc(malloc(bytes / 2 + 1), bytes);
	case 3:
		return reallocarray(NULL, bytes, 1);
	case 4:
		return aligned_alloc(64, (bytes + 63) & ~(size_t)63);
	case 5:
		CHECK(posix_memalign(&block, 4096, bytes) == 0);
		return block;
	}
	char *text = malloc(bytes);
	memset(text, 'a', bytes - 1);
	text[bytes - 1] = 0;
	block = strdup(text);
	free(text);
	return block;
}

static void use(const char *way, void *block, size_t bytes)
{
	CHECK(block);
	((unsigned char *)block)[0] = ((unsigned char *)block)[bytes - 1] = 0x5a;
	if (strcmp(way, "usable") == 0) {
		size_t usable = measure(hidden(block));
		CHECK(usable >= bytes && usable < 2 * bytes + 70000);
	} else if (strcmp(way, "realloc") == 0) {
		block = resize(hidden(block), 2 * bytes);
		CHECK(block && ((unsigned char *)block)[bytes - 1] == 0x5a);
		block = resize(hidden(block), bytes / 2 + 1);
		CHECK(block && *(unsigned char *)block == 0x5a);
	}
	release(hidden(block));
}

int main(int argc, char **argv)
{
	void *libc = dlopen("libc.so.6", RTLD_NOW);
	CHECK(argc > 2 && libc);
	const char *way = argv[1];
	release = strcmp(way, "__libc_free") == 0 ? __libc_free : (void (*)(void *))dlsym(libc, "free");
	resize = (void *(*)(void *, size_t))dlsym(libc, "realloc");
	measure = (size_t(*)(void *))dlsym(libc, "malloc_usable_size");
	for (int i = 2; i < argc; i++) {
		size_t bytes = strtoull(argv[i], NULL, 10);
		for (int round = 0; round < ROUNDS; round++)
			for (int maker = 0; maker < 7; maker++)
				use(way, make(maker, bytes), bytes);
	}
	return 0;
}
