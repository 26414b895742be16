/* Which calls of a copy are to go past the caches. */
#ifndef SITES_H
#define SITES_H

#include <stdint.h>

#define NO_SITE (-1)

/* Learns the sites of `text`, as places.h has them. Returns how many there are. */
unsigned learn_sites(const char *text);

/* The site of the call that returns to `returns`, or NO_SITE. Takes no lock, allocates nothing, keeps errno. */
int site_of(uintptr_t returns);

#endif
