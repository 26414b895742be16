/* Pages of a file in the page cache, and how they are given back. Nothing here allocates, takes a lock or changes
 * errno. */
#ifndef CACHE_H
#define CACHE_H

#include <stddef.h>
#include <stdint.h>

#define PAGE_BYTES 4096ull

/* Pages of a stretch of a file, as the kernel counts them. */
struct cached {
	uint64_t pages;     /* in the page cache */
	uint64_t unwritten; /* of those, dirty or on their way to the disk; 0 where only mincore is there */
};

/* The system calls that look into the page cache. */
enum eyes {
	EYES_CACHESTAT,
	EYES_MINCORE, /* older kernels; sees no dirty pages */
	EYES_NONE,
};

/* Whether the stretch could be looked at. `from` and `to` are pages. */
int look(enum eyes eyes, int fd, uint64_t from, uint64_t to, struct cached *found);

/* Sets the bit of each page of the stretch that is in the page cache and clears the others'. Page `p` has the bit
 * `p % bits`, and `bits` is a multiple of 64. Returns the pages found, or -1 where they cannot be looked at. */
int64_t mark_cached(enum eyes eyes, int fd, uint64_t from, uint64_t to, uint64_t *map, uint64_t bits);

/* Hands dirty pages to the disk and does not wait. It never waits by sync_file_range, which would take from the
 * program the error that its own fsync must report. */
void begin_writing(int fd, uint64_t from, uint64_t to);

/* Gives clean pages back. */
void drop(int fd, uint64_t from, uint64_t to);

#endif
