/* Shifts large and page-multiple blocks of malloc, calloc and realloc by whole lines, each
 * block by one line more than the last, so that blocks walked together do not share cache
 * sets. Every promise of malloc is kept: a block handed out is known by its address, and
 * what is not shifted goes through untouched. What has an alignment as its purpose
 * (aligned_alloc, posix_memalign, memalign, valloc) is not intercepted at all. */
#define _GNU_SOURCE
#include "parameters.h"
#include "../kit/early.h"
#include "../kit/owner.h"
#include "shifted.h"
#include <dlfcn.h>
#include <errno.h>
#include <string.h>

#define PAGE_BYTES 4096
#define SELDOM __attribute__((noinline, cold))

static struct parameters parameters;
static atomic_uint next_color;

/* What the common case looks at, and nothing else. Blocks smaller than this go straight to
 * the allocator behind us; 0 until it is known. */
static atomic_size_t straight_below;
/* Whether every block goes straight back to it: it is known, and none was ever shifted. */
static atomic_int straight_back;

/* The allocator behind us: the program's own if it brings one, else the C library's. */
static struct {
	void *(*_Atomic malloc)(size_t);
	void *(*_Atomic calloc)(size_t, size_t);
	void *(*_Atomic realloc)(void *, size_t);
	void (*_Atomic free)(void *);
	size_t (*_Atomic usable)(void *);
} behind;

static __thread int resolving __attribute__((tls_model("initial-exec")));

/* Finds the allocator behind us. Returns 0 to a call from within the search itself. Threads
 * that search at the same time find the same. `malloc` is set last: it stands for all. */
static int resolve(void)
{
	if (resolving)
		return 0;
	resolving = 1;
	behind.calloc = (void *(*)(size_t, size_t))dlsym(RTLD_NEXT, "calloc");
	behind.realloc = (void *(*)(void *, size_t))dlsym(RTLD_NEXT, "realloc");
	behind.free = (void (*)(void *))dlsym(RTLD_NEXT, "free");
	behind.usable = (size_t(*)(void *))dlsym(RTLD_NEXT, "malloc_usable_size");
	behind.malloc = (void *(*)(size_t))dlsym(RTLD_NEXT, "malloc");
	resolving = 0;
	return 1;
}

static inline int ready(void)
{
	return __builtin_expect(behind.malloc != NULL, 1) || resolve();
}

__attribute__((constructor)) static void begin(void)
{
	resolve();
	/* Before anything goes straight, every call comes to malloc_seldom. */
	int ours = process_malloc_is_ours("nearmiss_blocks_malloc");
	/* Nothing is colored before the parameters are known. */
	if (!early_used())
		atomic_store_explicit(&straight_back, 1, memory_order_relaxed);
	atomic_store_explicit(&straight_below, SHIFTED_LEAST_BYTES, memory_order_release);
	begin_coloring("blocks", &parameters);
	if (!ours) {
		/* The program's own malloc, or one preloaded before us: we are never asked. */
		count(BLOCKS_MALLOC_ELSEWHERE, 1);
		parameters.block_bytes = 0;
	}
}

static inline int wanted(size_t bytes)
{
	return parameters.block_bytes &&
	       (bytes >= parameters.block_bytes || (bytes % PAGE_BYTES == 0 && bytes)) &&
	       bytes >= SHIFTED_LEAST_BYTES && bytes <= PTRDIFF_MAX - SHIFTED_LARGEST_SHIFT;
}

static size_t next_shift(void)
{
	return shift_of(&parameters, atomic_fetch_add_explicit(&next_color, 1, memory_order_relaxed));
}

/* Enters a block that was made `shift_bytes` larger. */
static void *hand_out(char *base, size_t shift_bytes)
{
	atomic_store_explicit(&straight_back, 0, memory_order_relaxed);
	if (!shifted_put(base + shift_bytes, shift_bytes)) {
		count(BLOCKS_LEFT, 1);
		return base;
	}
	count(BLOCKS_COLORED, 1);
	count(BLOCKS_ADDED_BYTES, shift_bytes);
	return base + shift_bytes;
}

static inline int goes_straight_back(void)
{
	return __builtin_expect(atomic_load_explicit(&straight_back, memory_order_relaxed), 1);
}

SELDOM static void *malloc_seldom(size_t bytes)
{
	atomic_store_explicit(&malloc_reached, 1, memory_order_relaxed);
	if (!ready())
		return early_allocate(bytes);
	if (wanted(bytes)) {
		size_t shift_bytes = next_shift();
		char *base = shift_bytes ? behind.malloc(bytes + shift_bytes) : NULL;
		if (base)
			return hand_out(base, shift_bytes);
	}
	return behind.malloc(bytes);
}

EXPORT void *malloc(size_t bytes)
{
	if (__builtin_expect(bytes < atomic_load_explicit(&straight_below, memory_order_acquire), 1))
		return behind.malloc(bytes);
	return malloc_seldom(bytes);
}

/* Only we export this name: it tells whether the process's malloc is ours. */
EXPORT void *nearmiss_blocks_malloc(size_t) __attribute__((alias("malloc")));

EXPORT void *calloc(size_t count, size_t each)
{
	size_t bytes;
	int overflow = __builtin_mul_overflow(count, each, &bytes);
	if (!ready())
		return overflow ? NULL : early_allocate(bytes); /* static memory is zero */
	if (!overflow && wanted(bytes)) {
		size_t shift_bytes = next_shift();
		char *base = shift_bytes ? behind.calloc(1, bytes + shift_bytes) : NULL;
		if (base)
			return hand_out(base, shift_bytes);
	}
	return behind.calloc(count, each);
}

SELDOM static void free_seldom(void *block)
{
	if (block && !early_owns(block) && ready())
		behind.free((char *)block - shifted_take(block));
}

EXPORT void free(void *block)
{
	if (goes_straight_back())
		behind.free(block);
	else
		free_seldom(block);
}

/* A new block with the old one's first bytes; the old one is the caller's to free. */
static void *copy_to_new(const void *old, size_t old_bytes, size_t bytes)
{
	void *block = malloc(bytes);
	if (block)
		memcpy(block, old, old_bytes < bytes ? old_bytes : bytes);
	return block;
}

static void *grow_shifted(void *block, size_t shift_bytes, size_t bytes)
{
	char *base = (char *)block - shift_bytes;
	if (bytes == 0)
		return behind.realloc(base, 0);
	if (bytes < SHIFTED_LEAST_BYTES) {
		void *small = copy_to_new(block, bytes, bytes);
		if (small)
			behind.free(base);
		else
			shifted_put(block, shift_bytes);
		return small;
	}
	char *moved = NULL;
	if (bytes <= PTRDIFF_MAX - shift_bytes)
		moved = behind.realloc(base, bytes + shift_bytes);
	else
		errno = ENOMEM;
	if (!moved) {
		shifted_put(block, shift_bytes); /* the old block stays as it was */
		return NULL;
	}
	if (shifted_put(moved + shift_bytes, shift_bytes))
		return moved + shift_bytes;
	count(BLOCKS_LEFT, 1);
	return memmove(moved, moved + shift_bytes, bytes);
}

EXPORT void *realloc(void *block, size_t bytes)
{
	if (!block)
		return malloc(bytes);
	if (early_owns(block))
		return copy_to_new(block, early_size(block), bytes);
	if (!ready())
		return NULL;
	/* Taken out before the memory can become another thread's. */
	size_t shift_bytes = goes_straight_back() ? 0 : shifted_take(block);
	if (shift_bytes)
		return grow_shifted(block, shift_bytes, bytes);
	if (wanted(bytes) && behind.usable) {
		/* Grown to a size worth coloring; a larger one is left, for it may be moved
		 * by remapping its pages instead of being copied. */
		size_t old_bytes = behind.usable(block);
		if (old_bytes < 4 * PAGE_BYTES && old_bytes < bytes) {
			void *colored = copy_to_new(block, old_bytes, bytes);
			if (colored)
				behind.free(block);
			return colored;
		}
	}
	return behind.realloc(block, bytes);
}

EXPORT void *reallocarray(void *block, size_t count, size_t each)
{
	size_t bytes;
	if (__builtin_mul_overflow(count, each, &bytes)) {
		errno = ENOMEM;
		return NULL;
	}
	return realloc(block, bytes);
}

EXPORT size_t malloc_usable_size(void *block)
{
	if (!block || !ready())
		return 0;
	if (early_owns(block))
		return early_size(block);
	size_t shift_bytes = goes_straight_back() ? 0 : shifted_get(block);
	return behind.usable ? behind.usable((char *)block - shift_bytes) - shift_bytes : 0;
}

/* C23; in a C library that has them they would reach its own free. */
EXPORT void free_sized(void *block, size_t bytes)
{
	(void)bytes;
	free(block);
}

EXPORT void free_aligned_sized(void *block, size_t alignment, size_t bytes)
{
	(void)alignment;
	(void)bytes;
	free(block);
}

/* An object loaded with RTLD_DEEPBIND would call the C library's free with our blocks. The
 * flag is dropped; the rest is a jump, since the loader looks at who called it. */
EXPORT void *dlopen(const char *file, int mode)
{
	static void *(*_Atomic found)(const char *, int);
	if (!found)
		found = (void *(*)(const char *, int))dlsym(RTLD_NEXT, "dlopen");
	if (mode & RTLD_DEEPBIND && parameters.block_bytes) {
		count(BLOCKS_DEEPBIND_DROPPED, 1);
		mode &= ~RTLD_DEEPBIND;
	}
	return found(file, mode);
}
