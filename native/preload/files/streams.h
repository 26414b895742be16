/* State of the program's descriptors: which of them are files with pages that are to go, and which of their pages were
 * looked at and not given back yet. */
#ifndef STREAMS_H
#define STREAMS_H

#include "cache.h"
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/* As crates/remedies/src/bypass/files/apply.rs names them. All but FILES and COPIES count bytes. */
enum counter {
	FILES,          /* descriptors of files that the remedy took on */
	DONTCACHE,      /* by requests that the kernel itself keeps out of the page cache */
	WINDOWS,        /* by ordinary requests, with their pages given back by windows */
	GIVEN_BACK,     /* dropped from the page cache by windows */
	KEPT,           /* on the way of the program, and in the page cache before it came */
	COPIES,         /* calls of copy_file_range that became reads and writes */
	LEFT_DIRECT,    /* of descriptors that pass by the page cache themselves */
	LEFT_UNNAMED,   /* of files that --only does not name */
	LEFT_MEMORY,    /* of files that have no other place than memory */
	LEFT_UNSEEN,    /* of files with pages that the kernel does not let us look at */
	LEFT_CROWDED,   /* of descriptors that another thread was busy with, or with too high a number */
	LEFT_UNWRITTEN, /* in the page cache still: the disk was too slow */
	REFUSED,        /* descriptors on a file system that does not take RWF_DONTCACHE */
	LEFT_BEHIND,    /* in the page cache still when the file was left: others use them, or they came later */
};

/* Offset of a request without one of its own: the descriptor's position. */
#define AT_POSITION (~0ull)

/* How a request goes to the kernel. */
enum way {
	WAY_PLAIN,     /* not for us */
	WAY_WINDOWS,   /* as it is, and noted by `passed` */
	WAY_DONTCACHE, /* with RWF_DONTCACHE; if refused, `refused` returns the other way */
};

enum direction {
	READING,
	WRITING,
};

/* Before a request: how it goes. Looks at the pages that it may bring in. */
enum way prepare(int fd, enum direction direction, uint64_t offset, uint64_t bytes);

/* As prepare(), for requests that cannot be changed: never returns WAY_DONTCACHE. */
enum way prepare_ordinary(int fd, enum direction direction, uint64_t offset, uint64_t bytes);

/* The file system refuses: the way that the request goes instead, which is never WAY_DONTCACHE. */
enum way refused(int fd, enum direction direction, uint64_t offset, uint64_t bytes);

/* After a request that went by `way` and returned `bytes`, less than 0 where it failed. */
void passed(int fd, enum direction direction, enum way way, uint64_t offset, ssize_t bytes);

/* The descriptor's position is set. */
void moved(int fd, off_t position);

/* The descriptor is about to be closed, or to become another file's: gives back what is left. */
void leave(int fd);

void leave_range(unsigned first, unsigned last);

/* Whether requests of this descriptor are for us. */
int is_taken(int fd);

/* As is_taken, for a descriptor that had a request already. */
int is_under_way(int fd);

/* Not so between vfork and exec. */
int is_own_process(void);

/* Nothing is known any more: what there is belongs to the parent. */
void forget_parents(void);

/* `only`: the pattern of names, or NULL for all; it must stay where it is. */
void set_up(enum eyes eyes, const char *only);

#endif
