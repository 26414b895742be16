/* What nearmiss and its preloaded coloring libraries agree on: the environment variable that
 * carries the parameters and the shared page that carries the report back.
 * Mirrored in crates/remedy/src/color/apply/report.rs, where the layout is asserted again. */
#ifndef NEARMISS_PRELOAD_H
#define NEARMISS_PRELOAD_H

#include <stddef.h>
#include <stdint.h>

/* colors=N,line=BYTES,blocks=BYTES,fd=N,pid=N,token=HEX
 * blocks: least size of a block to color; 0 colors none. fd: the report, as inherited;
 * pid: the process that holds it under the same number, should fd have been closed. */
#define NEARMISS_PRELOAD_ENV "NEARMISS_COLOR_PRELOAD"

#define NEARMISS_REPORT_MAGIC 0x31726c6f636d6e21ull
#define NEARMISS_REPORT_PIDS 248

/* Which of the two libraries reports. */
enum { NEARMISS_PART_STACKS = 0, NEARMISS_PART_BLOCKS = 1, NEARMISS_PARTS = 2 };

struct nearmiss_part {
	uint64_t processes;                  /* programs started with the library in place */
	int32_t pids[NEARMISS_REPORT_PIDS];  /* the first of them, 0 where unused */
};

/* All counters only grow and are added to atomically by any number of processes. */
struct nearmiss_report {
	uint64_t magic;
	uint64_t token;             /* random, also in the environment: is this our page? */
	uint64_t stacks_colored;    /* threads started on a shifted stack */
	uint64_t stacks_plain;      /* threads whose stack was left, as too small or too many at once */
	uint64_t blocks_colored;    /* blocks handed out shifted */
	uint64_t blocks_plain;      /* blocks that should have been shifted, for which memory lacked */
	uint64_t blocks_bytes;      /* bytes added to blocks in all */
	uint64_t deepbind_dropped;  /* dlopen calls that would have bypassed the library's free */
	uint64_t malloc_elsewhere;  /* programs whose own malloc comes before the library's */
	struct nearmiss_part parts[NEARMISS_PARTS];
};

_Static_assert(offsetof(struct nearmiss_report, parts) == 72, "report layout");
_Static_assert(sizeof(struct nearmiss_part) == 1000, "report layout");
_Static_assert(sizeof(struct nearmiss_report) == 2072, "report layout");

#endif
