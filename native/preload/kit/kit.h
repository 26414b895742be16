/* Shared by every preloaded library: the parameters, the handshake, and counters. */
#ifndef KIT_H
#define KIT_H

#include "nearmiss-preload.h"
#include <stdatomic.h>
#include <stddef.h>

#define EXPORT __attribute__((visibility("default")))

/* The number after `key=` in a list of parameters; 0 when there is none. */
uint64_t parameter(const char *list, const char *key, int base);

/* Reports on the page that this library is in place. Nothing happens when nearmiss did not start this program. */
void announce(const char *list, const char *library);

/* Returns this library's part of the page, or NULL where there is no page. */
struct nearmiss_part *own_part(void);

/* Returns what processes have still to give back, or NULL where there is no page. */
struct nearmiss_rest *own_rests(void);

/* Adds to one of the library's counters. */
static inline void count(unsigned counter, uint64_t n)
{
	struct nearmiss_part *part = own_part();
	if (part)
		__atomic_fetch_add(&part->counters[counter], n, __ATOMIC_RELAXED);
}

/* Reports something to nearmiss, once: only so many notes have a place, and a text of over 119 bytes has none. */
void report_note(unsigned about, const char *text);

#endif
