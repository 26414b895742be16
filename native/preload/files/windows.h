/* One stream through a file: which of its pages were looked at, and were not in the page cache before it came. The
 * caller has the stream for itself, except where a function's comment differs. */
#ifndef WINDOWS_H
#define WINDOWS_H

#include "streams.h"
#include <sys/stat.h>

/* Pages that a stream remembers: those that the disk still writes, the window, and those that the kernel may read ahead. */
#define REMEMBERED_PAGES (1 << 15)

enum kind {
	KIND_UNKNOWN,
	KIND_TAKEN,
	KIND_OTHER,   /* no regular file */
	KIND_DIRECT,  /* as the LEFT_ counters describe */
	KIND_UNNAMED,
	KIND_MEMORY,
};

struct stream {
	int busy;
	enum kind kind;
	enum eyes eyes;
	uint8_t refuses, has_written, has_border, is_dirty, blind, appends, gave_up;
	int noted; /* where the pages are noted for nearmiss, see rests.h */
	dev_t device;
	ino_t inode;
	/* Bytes below were there when the stream began: written again, they are overwritten in place. */
	uint64_t size_before;
	/* Requests within these bytes touch pages that were looked at. */
	uint64_t from, upto;
	/* Bytes left for requests at the position, where the offset takes a system call to find. */
	int64_t budget;
	uint64_t uncounted;
	/* Pages from `low` on, below `high`, were looked at and not given back yet; those below `begun` are on their way to
	 * the disk. From `trail` on, below `low`, none was in the page cache before. */
	uint64_t trail, low, begun, high;
	/* How far a look reaches: it grows while the stream goes on in order. */
	uint64_t stride;
	uint64_t was_cached[REMEMBERED_PAGES / 64];
};

void begin_stream(struct stream *stream, const struct stat *about, enum eyes eyes, int flags);

/* From any thread. */
int was_looked_at(const struct stream *stream, uint64_t offset, uint64_t bytes);
void set_position(struct stream *stream, uint64_t position);

int is_same_file(const struct stream *stream, const struct stat *about);

/* Gives back what lies behind the request, and looks at what the request may bring in. 0: nothing can be looked at. */
int move_windows(int fd, struct stream *stream, enum direction direction, uint64_t offset, uint64_t bytes,
                 const struct stat *about);

/* Gives back all that is left. */
void end_windows(int fd, struct stream *stream);

/* Whether what is written at the place that was looked at last is overwritten in place. */
int overwrites(const struct stream *stream);

#endif
