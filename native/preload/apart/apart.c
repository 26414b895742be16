/* Gives each small block of malloc, calloc and realloc cache lines of its own, so that blocks of two threads never lie
 * on one line. The blocks come from the allocator behind us, by its own aligned_alloc: its free, its realloc and its
 * malloc_usable_size take them as they are, and nothing has to be remembered. */
#define _GNU_SOURCE
#include "../kit/behind.h"
#include "../kit/kit.h"
#include "../kit/owner.h"
#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#define SELDOM __attribute__((noinline, cold))

/* As crates/remedies/src/apart/apply/mod.rs names them. */
enum {
	MOVED,
	LEFT,             /* for lack of memory */
	ADDED_BYTES,      /* in all */
	MALLOC_ELSEWHERE, /* programs with a malloc of their own that comes before ours */
	COUNTERS,
};

/* Sizes from `least` on, `sizes` of them, get lines of their own: none before the parameters are known. */
static size_t least_bytes, sizes;
static size_t line_bytes = 64;

/* Counters of all threads lie in one page: added to once a block they would be what this library is against. */
#define KEPT_BACK 64
static __thread uint64_t kept[COUNTERS] __attribute__((tls_model("initial-exec")));
static pthread_key_t thread_ends;
static int reports_ends;

static void hand_over(void *unused)
{
	(void)unused;
	for (unsigned i = 0; i < COUNTERS; i++) {
		if (kept[i])
			count(i, kept[i]);
		kept[i] = 0;
	}
}

static void forget_parents(void)
{
	memset(kept, 0, sizeof kept);
}

static void note(size_t added_bytes)
{
	if (kept[MOVED] == 0 && reports_ends)
		pthread_setspecific(thread_ends, kept);
	kept[ADDED_BYTES] += added_bytes;
	if (++kept[MOVED] == KEPT_BACK)
		hand_over(NULL);
}

/* Until the beginning is over, every call of malloc takes the long way. */
static atomic_int begun;

__attribute__((constructor)) static void begin(void)
{
	need_behind();
	const char *list = getenv("NEARMISS_APART_PRELOAD");
	int ours = process_malloc_is_ours("nearmiss_apart_malloc") && behind.aligned && behind.usable;
	atomic_store(&begun, 1);
	if (!list)
		return;
	announce(list, "apart");
	if (!ours) {
		count(MALLOC_ELSEWHERE, 1);
		return;
	}
	reports_ends = pthread_key_create(&thread_ends, hand_over) == 0;
	pthread_atfork(NULL, NULL, forget_parents);
	uint64_t line = parameter(list, "line", 10), least = parameter(list, "least", 10), most = parameter(list, "most", 10);
	if (line >= 16 && line <= 4096 && !(line & (line - 1)) && least >= 1 && least <= most && most <= 1 << 20) {
		line_bytes = line;
		least_bytes = least;
		sizes = most - least + 1;
	}
}

__attribute__((destructor)) static void end(void)
{
	hand_over(NULL);
}

static inline int wanted(size_t bytes)
{
	return __builtin_expect(bytes - least_bytes < sizes, 0);
}

static inline size_t whole_lines(size_t bytes)
{
	return (bytes + line_bytes - 1) & ~(line_bytes - 1);
}

/* A block on lines of its own, or NULL where there is no memory for one. */
static void *own_lines(size_t bytes)
{
	size_t whole = whole_lines(bytes);
	void *block = behind.aligned(line_bytes, whole);
	if (block)
		note(whole - bytes);
	else
		count(LEFT, 1);
	return block;
}

SELDOM static void *malloc_seldom(size_t bytes)
{
	atomic_store_explicit(&malloc_reached, 1, memory_order_relaxed);
	need_behind();
	return behind.malloc(bytes);
}

EXPORT void *malloc(size_t bytes)
{
	if (__builtin_expect(!atomic_load_explicit(&begun, memory_order_acquire), 0))
		return malloc_seldom(bytes);
	void *block = wanted(bytes) ? own_lines(bytes) : NULL;
	return block ? block : behind.malloc(bytes);
}

/* Only we export this name: it shows whether the process's malloc is ours. */
EXPORT void *nearmiss_apart_malloc(size_t) __attribute__((alias("malloc"), copy(malloc)));

EXPORT void *calloc(size_t count, size_t each)
{
	size_t bytes;
	need_behind();
	int overflow = __builtin_mul_overflow(count, each, &bytes);
	void *block = !overflow && wanted(bytes) ? own_lines(bytes) : NULL;
	return block ? memset(block, 0, bytes) : behind.calloc(count, each);
}

static void *copy_to(void *fresh, const void *old, size_t old_bytes, size_t bytes)
{
	return fresh ? memcpy(fresh, old, old_bytes < bytes ? old_bytes : bytes) : NULL;
}

EXPORT void *realloc(void *block, size_t bytes)
{
	if (!block)
		return malloc(bytes);
	need_behind();
	if (!wanted(bytes))
		return behind.realloc(block, bytes);
	size_t old_bytes = behind.usable(block);
	if ((uintptr_t)block % line_bytes == 0 && old_bytes >= whole_lines(bytes))
		return block; /* it has its lines for itself */
	void *moved = copy_to(own_lines(bytes), block, old_bytes, bytes);
	if (!moved)
		return behind.realloc(block, bytes);
	free(block);
	return moved;
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
