/* Shared by nearmiss and the libraries that its remedies preload: the page that carries handshakes and counters back.
 * Mirrored in crates/remedies/src/preload/page.rs, where the layout is asserted again.
 *
 * A remedy's parameters are one environment variable of its own, a list of `key=value` between commas. nearmiss adds
 *     fd=N      the page, as inherited
 *     pid=N     the process that holds the page under the same number, should fd have been closed
 *     token=HEX random, and also in the page: is this our page?
 *     NAME=N    for each of the remedy's libraries: its part of the page */
#ifndef NEARMISS_PRELOAD_H
#define NEARMISS_PRELOAD_H

#include <stddef.h>
#include <stdint.h>

#define NEARMISS_PAGE_MAGIC 0x32726c6f636d6e21ull
#define NEARMISS_PIDS 248
#define NEARMISS_COUNTERS 64
#define NEARMISS_PARTS 8
#define NEARMISS_RESTS 64
#define NEARMISS_NOTES 32
#define NEARMISS_NOTE_WORDS 15

/* A short message of a library. */
struct nearmiss_note {
	uint64_t about;                      /* 1 and what the library means by it; 0 until the text is whole */
	uint64_t text[NEARMISS_NOTE_WORDS]; /* bytes of it, then zeros */
};

/* One library's. */
struct nearmiss_part {
	uint64_t programs;                    /* programs started with the library in place */
	int32_t pids[NEARMISS_PIDS];          /* the first of them, 0 where unused */
	uint64_t counters[NEARMISS_COUNTERS]; /* what the library declares; they only grow, and any number of processes
	                                       * adds to them atomically */
	uint64_t notes_begun;
	struct nearmiss_note notes[NEARMISS_NOTES];
};

/* Pages of a file that a process still has to give back: if it is killed, nearmiss sees to them. */
enum nearmiss_rest_state {
	NEARMISS_REST_FREE,
	NEARMISS_REST_TAKEN,
	NEARMISS_REST_WHOLE,
};

struct nearmiss_rest {
	uint32_t state;
	int32_t pid;
	uint64_t device, inode;
	uint64_t from, to;    /* pages */
	uint64_t mixed;       /* some of them were in the page cache before */
	uint64_t name[26];    /* of the file: bytes, then at least one zero */
};

struct nearmiss_page {
	uint64_t magic;
	uint64_t token;
	struct nearmiss_part parts[NEARMISS_PARTS];
	struct nearmiss_rest rests[NEARMISS_RESTS];
};

_Static_assert(sizeof(struct nearmiss_part) == 5616, "page layout");
_Static_assert(sizeof(struct nearmiss_rest) == 256, "page layout");
_Static_assert(sizeof(struct nearmiss_page) == 61328, "page layout");

#endif
