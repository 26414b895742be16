/* Pages that a process has still to give back, written down for nearmiss, which sees to it when the process is
 * killed. */
#ifndef RESTS_H
#define RESTS_H

#include <stdint.h>
#include <sys/types.h>

#define NO_REST (-1)

/* A place for pages of the file of this name, of which there are none yet. NO_REST: all places are taken, the name is too
 * long, or nearmiss did not start this program. */
int begin_rest(dev_t device, ino_t inode, const char *name);

/* Pages from `from` on, below `to`; `mixed`: some of them were there before. */
void set_rest(int rest, uint64_t from, uint64_t to, int mixed);

/* Ends a rest: its pages were given back. */
void end_rest(int rest);

#endif
