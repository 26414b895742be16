/* Places of sites in what is loaded. */
#ifndef PLACES_H
#define PLACES_H

#include <stddef.h>
#include <stdint.h>

/* As crates/remedies/src/bypass/copies/apply/options.rs has it. */
#define MOST_SITES 20

/* Reads the sites from `text`, one a line: FUNC or MODULE+0xOFF, with @CALLER or without. Finds them in what is loaded.
 * Returns how many there are. */
unsigned learn_places(const char *text);

/* Looks into the file at a return address, unless that was done before. Returns 0 where another thread is at it: whoever
 * comes meanwhile takes the ordinary way, this once. Takes no lock, allocates nothing. */
int learn_place(uintptr_t returns);

/* The name of a return address as a site would have it: its function's, or that of the call before it. 0: it has none. */
int name_place(uintptr_t returns, char *name, size_t room);

/* Places of a site that were found so far. */
unsigned places_of(unsigned site);

/* Whether a site names the caller of its call's function. */
int names_caller(unsigned site);

/* Whether a return address comes from a site's call, or from its caller's. */
int is_from(uintptr_t returns, unsigned site, int is_caller);

#endif
