/* Every function by which a program allocates memory, in front of the allocator behind us and of the kernel. */
#define _GNU_SOURCE
#include "allocations.h"
#include "behind.h"
#include "kit.h"
#include <dlfcn.h>
#include <errno.h>
#include <sys/mman.h>
#include <sys/types.h>

size_t allocations_from = SIZE_MAX;

static inline void *passed(void *memory, size_t bytes, const void *caller)
{
	if (__builtin_expect(bytes >= allocations_from, 0) && memory)
		allocated(memory, bytes, caller);
	return memory;
}

EXPORT void *malloc(size_t bytes)
{
	need_behind();
	return passed(behind.malloc(bytes), bytes, __builtin_return_address(0));
}

EXPORT void *calloc(size_t count, size_t each)
{
	size_t bytes;
	need_behind();
	if (__builtin_mul_overflow(count, each, &bytes))
		bytes = 0;
	return passed(behind.calloc(count, each), bytes, __builtin_return_address(0));
}

EXPORT void *realloc(void *block, size_t bytes)
{
	need_behind();
	return passed(behind.realloc(block, bytes), bytes, __builtin_return_address(0));
}

EXPORT void *reallocarray(void *block, size_t count, size_t each)
{
	size_t bytes;
	need_behind();
	if (__builtin_mul_overflow(count, each, &bytes)) {
		errno = ENOMEM;
		return NULL;
	}
	return passed(behind.realloc(block, bytes), bytes, __builtin_return_address(0));
}

/* A function behind us that is looked for at its first use. */
#define BEHIND(name, type)                                                   \
	static __typeof__(type) *_Atomic found;                              \
	__typeof__(type) *function = atomic_load_explicit(&found, memory_order_relaxed); \
	if (!function) {                                                     \
		function = (__typeof__(type) *)dlsym(RTLD_NEXT, name);       \
		atomic_store_explicit(&found, function, memory_order_relaxed); \
	}

EXPORT int posix_memalign(void **out, size_t alignment, size_t bytes)
{
	BEHIND("posix_memalign", int(void **, size_t, size_t))
	int failed = function(out, alignment, bytes);
	if (!failed)
		passed(*out, bytes, __builtin_return_address(0));
	return failed;
}

EXPORT void *aligned_alloc(size_t alignment, size_t bytes)
{
	BEHIND("aligned_alloc", void *(size_t, size_t))
	return passed(function(alignment, bytes), bytes, __builtin_return_address(0));
}

EXPORT void *memalign(size_t alignment, size_t bytes)
{
	BEHIND("memalign", void *(size_t, size_t))
	return passed(function(alignment, bytes), bytes, __builtin_return_address(0));
}

static void *mapped(void *memory, size_t bytes, int flags, const void *caller)
{
	/* The pages of a file's contents follow other rules. */
	if (memory != MAP_FAILED && flags & MAP_ANONYMOUS)
		passed(memory, bytes, caller);
	return memory;
}

EXPORT void *mmap(void *address, size_t bytes, int protection, int flags, int fd, off_t offset)
{
	BEHIND("mmap", void *(void *, size_t, int, int, int, off_t))
	void *memory = function(address, bytes, protection, flags, fd, offset);
	return mapped(memory, bytes, flags, __builtin_return_address(0));
}

EXPORT void *mmap64(void *address, size_t bytes, int protection, int flags, int fd, off64_t offset)
{
	BEHIND("mmap64", void *(void *, size_t, int, int, int, off64_t))
	void *memory = function(address, bytes, protection, flags, fd, offset);
	return mapped(memory, bytes, flags, __builtin_return_address(0));
}
