/* A program with an allocator of its own inside, exported so that libraries use it too. */
#include <stddef.h>
#include <string.h>

static char memory[16 << 20];
static size_t used;

void *malloc(size_t bytes)
{
	size_t at = __atomic_fetch_add(&used, (bytes + 31) & ~(size_t)15, __ATOMIC_RELAXED);
	if (at + bytes + 16 > sizeof memory)
		return NULL;
	*(size_t *)(memory + at) = bytes;
	return memory + at + 16;
}

void free(void *block)
{
	(void)block;
}

void *calloc(size_t count, size_t each)
{
	return malloc(count * each);
}

void *realloc(void *block, size_t bytes)
{
	void *fresh = malloc(bytes);
	if (fresh && block) {
		size_t old = *(size_t *)((char *)block - 16);
		memcpy(fresh, block, old < bytes ? old : bytes);
	}
	return fresh;
}

int main(void)
{
	return malloc(1 << 20) == NULL;
}
