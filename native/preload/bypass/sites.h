/* Which calls of a copy are to go past the caches. */
#ifndef SITES_H
#define SITES_H

#include <stdint.h>

/* As crates/remedy/src/bypass/copies/apply/mod.rs has them. */
#define MOST_SITES 20
#define NO_SITE (-1)

/* Reads the sites from `text`, one a line, and finds them in what is loaded. Returns how many there are. */
unsigned learn_sites(const char *text);

/* Places of site `site` that were found so far. */
unsigned places_of(unsigned site);

/* The site of the call that returns to `returns`, or NO_SITE. Takes no lock, allocates nothing, keeps errno. */
int site_of(uintptr_t returns);

#endif
