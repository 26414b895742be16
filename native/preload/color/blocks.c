/* Makes large blocks of malloc, calloc and realloc longer, each by as much as brings the next block of the C library's
 * heap to the next color: blocks walked together then do not share cache sets.
 *
 * Every block is one that the C library returned, where the C library put it. So anything that frees, resizes or
 * measures blocks (a handle of the C library, __libc_free, a pointer taken early) takes them, and nothing has to be
 * remembered. Another allocator's blocks are left as they are: where it puts them is its own affair. */
#define _GNU_SOURCE
#include "parameters.h"
#include "../kit/behind.h"
#include "../kit/owner.h"
#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

#define PAGE_BYTES 4096
#define LEAST_BYTES 3072
#define SELDOM __attribute__((noinline, cold))

/* From the end of a block of a multiple of 16 bytes to the next block. */
#define BETWEEN_BYTES 16
/* From here on the C library maps blocks until its threshold is raised. */
#define MAPPED_AT_FIRST ((size_t)128 << 10)
/* Larger blocks stay mapped, as they are without us. A thread's heap consists of pieces of 64 MB with first blocks that
 * begin alike: of these sizes most are not the first. And memory that the program frees goes back to the kernel. */
#define MOST_IN_HEAP ((size_t)8 << 20)
/* Longer blocks fill the heap sooner, and a program may have forbidden itself the system call by which the heap grows.
 * This is what its first blocks are made longer by: 256 at least in up to 64 colors. */
#define ROOM_TO_START_WITH ((size_t)1 << 20)

static struct parameters parameters;
static atomic_size_t mapping_threshold = MAPPED_AT_FIRST;

/* All that the common case looks at: smaller blocks go straight to the allocator behind us. 0 until it is known which
 * those are. */
static atomic_size_t straight_below;

/* Blocks that this thread placed, in its part of the heap and in mappings of their own. */
static __thread uint32_t in_heap, in_mappings __attribute__((tls_model("initial-exec")));

/* All mappings begin alike. The C library raises the threshold to the size of a mapped block that is freed, unless the
 * user or the program has set it. Done when the first block is to be mapped: it costs up to 0.1 ms, and system calls. */
SELDOM static void raise_mapping_threshold(void)
{
	static atomic_int raised;
	if (atomic_exchange(&raised, 1))
		return;
	void *block = behind.malloc(MOST_IN_HEAP - 2 * (size_t)sysconf(_SC_PAGESIZE));
	if (block)
		atomic_store(&mapping_threshold, behind.usable(block) + BETWEEN_BYTES);
	free(block);
}

static void make_room(void)
{
	free(behind.malloc(ROOM_TO_START_WITH));
}

__attribute__((constructor)) static void begin(void)
{
	need_behind();
	/* Before anything goes straight, every call comes to malloc_seldom. */
	int ours = process_malloc_is_ours("nearmiss_blocks_malloc") && behind_is_libc();
	struct parameters given = { 0 };
	begin_coloring("blocks", &given);
	if (given.block_bytes && !ours)
		/* The program's own malloc, or one preloaded beside us. */
		count(BLOCKS_MALLOC_ELSEWHERE, 1);
	if (given.block_bytes && ours && given.colors > 1) {
		make_room();
		parameters = given;
	}
	size_t least = given.block_bytes < LEAST_BYTES ? LEAST_BYTES : given.block_bytes;
	atomic_store_explicit(&straight_below, parameters.colors ? least : SIZE_MAX, memory_order_release);
}

static inline int wanted(size_t bytes)
{
	size_t least = atomic_load_explicit(&straight_below, memory_order_acquire);
	return least && bytes >= least && bytes <= PTRDIFF_MAX / 2;
}

/* As many bytes or more, so that the block behind begins where the next color does. */
static size_t stretched(size_t bytes)
{
	size_t around = (parameters.colors * (size_t)parameters.line_bytes + PAGE_BYTES - 1) / PAGE_BYTES * PAGE_BYTES;
	size_t ahead = around + shift_of(&parameters, in_heap + 1) - shift_of(&parameters, in_heap);
	size_t to_next = (bytes + BETWEEN_BYTES + 15) & ~(size_t)15;
	to_next += (ahead + around - to_next % around) % around;
	return to_next - BETWEEN_BYTES;
}

/* The C library's heap uses the 8 bytes behind a block for it, and a mapping ends with the block. */
static int lies_in_heap(void *block)
{
	return behind.usable(block) % 16 == 8;
}

static int fits_heap(size_t bytes, size_t longer)
{
	if (bytes >= MAPPED_AT_FIRST && longer + BETWEEN_BYTES >= mapping_threshold)
		raise_mapping_threshold();
	return longer + BETWEEN_BYTES < mapping_threshold;
}

static void *placed(void *block, size_t added_bytes)
{
	if (!block || !lies_in_heap(block)) {
		count(BLOCKS_LEFT, 1);
		return block;
	}
	in_heap++;
	count(BLOCKS_COLORED, 1);
	count(BLOCKS_ADDED_BYTES, added_bytes);
	return block;
}

/* The C library frees a mapped block only at its mapping's beginning, or at a power of two behind a page: the half page,
 * the quarter, and so on down to one line. */
static void *mapped(size_t bytes)
{
	uint32_t places = 1;
	while (places < parameters.colors && (uint32_t)PAGE_BYTES >> places >= parameters.line_bytes)
		places++;
	uint32_t place = in_mappings++ % places;
	size_t behind_page = place ? PAGE_BYTES >> place : 0;
	void *block = place ? behind.aligned(behind_page, bytes) : behind.malloc(bytes);
	count(block ? BLOCKS_COLORED : BLOCKS_LEFT, 1);
	count(BLOCKS_ADDED_BYTES, block ? behind_page : 0);
	return block;
}

SELDOM static void *malloc_seldom(size_t bytes)
{
	atomic_store_explicit(&malloc_reached, 1, memory_order_relaxed);
	need_behind();
	void *block = NULL;
	if (wanted(bytes)) {
		size_t longer = stretched(bytes);
		if (fits_heap(bytes, longer))
			block = placed(behind.malloc(longer), longer - bytes);
		else if (bytes >= MAPPED_AT_FIRST)
			block = mapped(bytes);
		else
			count(BLOCKS_LEFT, 1);
	}
	return block ? block : behind.malloc(bytes);
}

EXPORT void *malloc(size_t bytes)
{
	if (__builtin_expect(bytes < atomic_load_explicit(&straight_below, memory_order_acquire), 1))
		return behind.malloc(bytes);
	return malloc_seldom(bytes);
}

/* Only we export this name: it shows whether the process's malloc is ours. */
EXPORT void *nearmiss_blocks_malloc(size_t) __attribute__((alias("malloc"), copy(malloc)));

EXPORT void *calloc(size_t number, size_t each)
{
	size_t bytes;
	need_behind();
	void *block = NULL;
	if (!__builtin_mul_overflow(number, each, &bytes) && wanted(bytes)) {
		size_t longer = stretched(bytes);
		if (fits_heap(bytes, longer))
			block = placed(behind.calloc(1, longer), longer - bytes);
		else
			/* Only calloc can rely on fresh memory being zero. */
			count(BLOCKS_LEFT, 1);
	}
	return block ? block : behind.calloc(number, each);
}

EXPORT void *realloc(void *block, size_t bytes)
{
	if (!block)
		return malloc(bytes);
	need_behind();
	if (!wanted(bytes))
		return behind.realloc(block, bytes);
	uintptr_t before = (uintptr_t)block;
	size_t longer = stretched(bytes);
	void *resized = fits_heap(bytes, longer) ? behind.realloc(block, longer) : NULL;
	if (!resized)
		return behind.realloc(block, bytes);
	return (uintptr_t)resized != before && lies_in_heap(resized) ? placed(resized, longer - bytes) : resized;
}

EXPORT void *reallocarray(void *block, size_t number, size_t each)
{
	size_t bytes;
	if (__builtin_mul_overflow(number, each, &bytes)) {
		errno = ENOMEM;
		return NULL;
	}
	return realloc(block, bytes);
}
