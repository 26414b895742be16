/* Gives memory its node where the program allocates it: blocks of a page and more, and mappings. The memory is what the
 * allocator behind us, or the kernel, returns; only its policy is set, and nothing has to be remembered. */
#define _GNU_SOURCE
#include "../kit/behind.h"
#include "../kit/kit.h"
#include "rules.h"
#include <dlfcn.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#define SELDOM __attribute__((noinline, cold))
#define LEAST_BYTES 4096

/* As crates/remedies/src/local/apply/libraries.rs names them. */
enum {
	HOMED,
	HOMED_BYTES,
	REFUSED,
	COUNTERS,
};

/* No home is given before the rules are known. */
static unsigned known_rules;

void count_home(size_t bytes, int failed)
{
	count(failed ? REFUSED : HOMED, 1);
	if (!failed)
		count(HOMED_BYTES, bytes);
}

__attribute__((constructor)) static void begin(void)
{
	need_behind();
	const char *list = getenv("NEARMISS_LOCAL_PRELOAD");
	if (!list)
		return;
	announce(list, "homes");
	known_rules = read_rules(getenv("NEARMISS_LOCAL_HOMES"), parameter(list, "nodes", 16));
}

SELDOM static void homes_of(void *memory, size_t bytes, const void *caller)
{
	if (memory)
		give_homes(memory, bytes, caller);
}

static inline void *homed(void *memory, size_t bytes, const void *caller)
{
	if (__builtin_expect(bytes >= LEAST_BYTES && known_rules, 0))
		homes_of(memory, bytes, caller);
	return memory;
}

EXPORT void *malloc(size_t bytes)
{
	need_behind();
	return homed(behind.malloc(bytes), bytes, __builtin_return_address(0));
}

EXPORT void *calloc(size_t count, size_t each)
{
	size_t bytes;
	need_behind();
	if (__builtin_mul_overflow(count, each, &bytes))
		bytes = 0;
	return homed(behind.calloc(count, each), bytes, __builtin_return_address(0));
}

EXPORT void *realloc(void *block, size_t bytes)
{
	need_behind();
	return homed(behind.realloc(block, bytes), bytes, __builtin_return_address(0));
}

EXPORT void *reallocarray(void *block, size_t count, size_t each)
{
	size_t bytes;
	need_behind();
	if (__builtin_mul_overflow(count, each, &bytes)) {
		errno = ENOMEM;
		return NULL;
	}
	return homed(behind.realloc(block, bytes), bytes, __builtin_return_address(0));
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
		homed(*out, bytes, __builtin_return_address(0));
	return failed;
}

EXPORT void *aligned_alloc(size_t alignment, size_t bytes)
{
	BEHIND("aligned_alloc", void *(size_t, size_t))
	return homed(function(alignment, bytes), bytes, __builtin_return_address(0));
}

EXPORT void *memalign(size_t alignment, size_t bytes)
{
	BEHIND("memalign", void *(size_t, size_t))
	return homed(function(alignment, bytes), bytes, __builtin_return_address(0));
}

static void *mapped(void *memory, size_t bytes, int flags, const void *caller)
{
	/* The pages of a file's contents follow other rules. */
	if (memory != MAP_FAILED && flags & MAP_ANONYMOUS)
		homed(memory, bytes, caller);
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
