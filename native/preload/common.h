/* What both libraries need: the parameters, and the report. */
#ifndef COMMON_H
#define COMMON_H

#include "nearmiss-preload.h"
#include <stdatomic.h>
#include <stddef.h>

#define EXPORT __attribute__((visibility("default")))

struct parameters {
	uint32_t colors;
	uint32_t step; /* from one color to the next */
	uint32_t line_bytes;
	uint64_t block_bytes; /* least size of a block to color; 0: none */
};

/* Reads the environment and says to the report that this part is in place. Leaves
 * `parameters` zero, which colors nothing, when nearmiss did not start this program. */
void announce(int part, struct parameters *parameters);

/* The shift of the `n`-th object that is colored: neighbours' colors lie `step` apart. */
static inline size_t shift_of(const struct parameters *parameters, uint32_t n)
{
	uint32_t color = n % parameters->colors * parameters->step % parameters->colors;
	return (size_t)color * parameters->line_bytes;
}

/* Adds to a counter of the report; nothing happens where there is no report. */
#define COUNT(field, n)                                                                        \
	do {                                                                                   \
		struct nearmiss_report *report_ = report();                                    \
		if (report_)                                                                   \
			__atomic_fetch_add(&report_->field, (n), __ATOMIC_RELAXED);            \
	} while (0)

struct nearmiss_report *report(void);

#endif
