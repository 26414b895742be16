/* Files that were closed before the disk had what was written to them. A program that writes many small files would
 * wait for the disk at each close; so their names are remembered, and their pages given back a few files later or when
 * the program ends. */
#ifndef DEFERRED_H
#define DEFERRED_H

#include "cache.h"
#include <sys/types.h>

/* Pages of a file, none of which was in the page cache before. */
struct rest {
	dev_t device;
	ino_t inode;
	enum eyes eyes;
	uint64_t from, to;
	int is_dirty;
	int noted; /* where they are noted for nearmiss, see rests.h */
};

/* Whether the pages of the descriptor's file will be seen to. 0: the file has no name, or too long a one. */
int put_off(int fd, const struct rest *rest);

/* Gives back all of them, at the end of the program. */
void end_deferred(void);

/* Drops the list: the parent handles these files. */
void forget_deferred(void);

/* A short sleep, for the disk to come on: so many are five seconds. */
#define NAPS 10000
/* Naps for pages that are in use: so many are 50 milliseconds. */
#define FEW_NAPS 100
void nap(void);

/* "/proc/self/fd/FD"; what the descriptor is called, or 0. */
#define MOST_NAME 1024
int name_of(int fd, char name[MOST_NAME]);

#endif
