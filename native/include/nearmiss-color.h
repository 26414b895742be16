/* nearmiss-color.h: cache coloring for objects in pieces of memory of a power-of-two size and
 * alignment, such as a task structure at the bottom of its kernel stack. C99 and C++.
 *
 * Such objects all begin at the same offset, so their first fields share a few cache sets:
 * walking many of them misses on nearly each. Coloring shifts each object within its own
 * piece by some whole cache lines, and takes their number from the address of the piece:
 *
 *     object = base | (base >> k) & mask
 *
 * so that the object can be found again from any pointer into the piece, in three
 * instructions, without a field or a table. (Paper: task structures of Linux 2.4, get_current.)
 *
 * A run queue with task structures in pieces of 8 KB, in 32 colors of 64 bytes:
 *
 *     static struct nearmiss_coloring coloring;
 *
 *     void boot(void)  { coloring = nearmiss_coloring_make(8192, 64, 32); }
 *
 *     struct task *new_task(void)
 *     {
 *         char *piece = aligned_alloc(8192, 8192);
 *         struct task *task = nearmiss_color(&coloring, piece);
 *         // sizeof(struct task) and the stack share nearmiss_color_room(&coloring) bytes
 *         return task;
 *     }
 *     struct task *current(void *stack_pointer) { return nearmiss_color(&coloring, stack_pointer); }
 *     void free_task(struct task *task) { free(nearmiss_color_piece(&coloring, task)); }
 *
 * How many colors: the pieces that a cache can hold at once are its ways x max(1, way / piece)
 * a color. Fewer colors than are needed only spread the misses.
 *
 * Licence: MIT OR Apache-2.0. */
#ifndef NEARMISS_COLOR_H
#define NEARMISS_COLOR_H

#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

struct nearmiss_coloring {
	uintptr_t piece;   /* bytes of a piece, a power of two */
	uintptr_t mask;    /* (colors - 1) x line; 0 leaves objects where they are */
	unsigned shift;    /* k */
};

static inline int nearmiss_is_power_of_two(uintptr_t n)
{
	return n && !(n & (n - 1));
}

static inline unsigned nearmiss_log2(uintptr_t n)
{
	unsigned log = 0;
	while (n >>= 1)
		log++;
	return log;
}

/* The color comes from the address bits from `from_bit` on, which must lie above the piece's.
 * Neighbours in memory differ in color if that is the piece's own size; pages that lie in
 * memory as they do in the address space (huge pages) gain from bits above the cache's index. */
static inline struct nearmiss_coloring nearmiss_coloring_from(uintptr_t piece, uintptr_t line,
							      uintptr_t colors, unsigned from_bit)
{
	struct nearmiss_coloring coloring = { piece, 0, 0 };
	if (nearmiss_is_power_of_two(piece) && nearmiss_is_power_of_two(line) &&
	    nearmiss_is_power_of_two(colors) && colors <= piece / line / 2 &&
	    from_bit >= nearmiss_log2(piece)) {
		coloring.mask = (colors - 1) * line;
		coloring.shift = from_bit - nearmiss_log2(line);
	}
	return coloring;
}

/* All powers of two, in bytes; the colors may take up to half the piece. Senseless values leave objects where they
 * are. */
static inline struct nearmiss_coloring nearmiss_coloring_make(uintptr_t piece, uintptr_t line,
							      uintptr_t colors)
{
	return nearmiss_coloring_from(piece, line, colors, nearmiss_log2(piece));
}

/* Returns how many colors `nearmiss apply color` requests: the environment variable NEARMISS_COLOR, rounded down to a
 * power of two; 1 where it is not set, which is no coloring. */
static inline uintptr_t nearmiss_colors_asked(void)
{
	const char *text = getenv("NEARMISS_COLOR");
	unsigned long requested = text ? strtoul(text, NULL, 10) : 1;
	return requested >= 1 && requested <= 1024 ? (uintptr_t)1 << nearmiss_log2(requested) : 1;
}

/* The piece that a pointer points into. */
static inline void *nearmiss_color_piece(const struct nearmiss_coloring *coloring, const void *inside)
{
	return (void *)((uintptr_t)inside & ~(coloring->piece - 1));
}

/* The object of the piece that a pointer points into. */
static inline void *nearmiss_color(const struct nearmiss_coloring *coloring, const void *inside)
{
	uintptr_t base = (uintptr_t)inside & ~(coloring->piece - 1);
	return (void *)(base | ((base >> coloring->shift) & coloring->mask));
}

/* Bytes from the object to the end of its piece that are there in every color. */
static inline size_t nearmiss_color_room(const struct nearmiss_coloring *coloring)
{
	return coloring->piece - coloring->mask;
}

#endif
