/* Parameters of both coloring libraries. */
#ifndef PARAMETERS_H
#define PARAMETERS_H

#include "../kit/kit.h"

struct parameters {
	uint32_t colors;
	uint32_t step; /* from one color to the next */
	uint32_t line_bytes;
	uint64_t block_bytes; /* least size of a block to color; 0: none */
};

/* Counters of the libraries, as crates/remedies/src/color/apply/libraries.rs names them. */
enum { STACKS_COLORED, STACKS_LEFT /* too small, or too many at once */ };
enum {
	BLOCKS_COLORED,
	BLOCKS_LEFT,             /* that should have been placed: memory lacked, or the C library mapped them */
	BLOCKS_ADDED_BYTES,      /* in all */
	BLOCKS_MALLOC_ELSEWHERE, /* programs with another malloc than the C library's */
};

/* Reads the environment and reports on the page that this library is in place. Leaves `parameters` zero, which colors
 * nothing, when nearmiss did not start this program. */
void begin_coloring(const char *library, struct parameters *parameters);

/* The shift of the `n`-th object that is colored: neighbours' colors lie `step` apart. */
static inline size_t shift_of(const struct parameters *parameters, uint32_t n)
{
	uint32_t color = n % parameters->colors * parameters->step % parameters->colors;
	return (size_t)color * parameters->line_bytes;
}

#endif
