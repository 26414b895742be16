#include "early.h"
#include <errno.h>
#include <stdatomic.h>
#include <stdint.h>

#define EARLY_BYTES (64 * 1024)
#define ALIGNMENT 16

static _Alignas(ALIGNMENT) unsigned char memory[EARLY_BYTES];
static atomic_size_t used;

/* The size of a block lies in the 16 bytes before it. */
void *early_allocate(size_t bytes)
{
	if (bytes <= EARLY_BYTES - 2 * ALIGNMENT) {
		size_t whole = ALIGNMENT + ((bytes + ALIGNMENT - 1) & ~(size_t)(ALIGNMENT - 1));
		size_t at = atomic_fetch_add(&used, whole);
		if (at <= EARLY_BYTES && whole <= EARLY_BYTES - at) {
			*(size_t *)(memory + at) = bytes;
			return memory + at + ALIGNMENT;
		}
	}
	errno = ENOMEM;
	return NULL;
}

int early_used(void)
{
	return atomic_load(&used) != 0;
}

int early_owns(const void *block)
{
	return (uintptr_t)block - (uintptr_t)memory < EARLY_BYTES;
}

size_t early_size(const void *block)
{
	return *(const size_t *)((const unsigned char *)block - ALIGNMENT);
}
