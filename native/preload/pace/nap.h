/* A call of the poll family under pace: first nap, then make the call, then report what it returned. */
#ifndef NAP_H
#define NAP_H

#include "last.h"
#include "rules.h"
#include <signal.h>
#include <time.h>

/* As crates/remedies/src/pace/apply/mod.rs names them; the first are those of enum pace_why. */
enum {
	NOT_KNOWN = PACE_REASONS, /* whether something is left over */
	EVENTS,
	SLEPT_NS,
	COUNTERS,
};

struct call {
	int64_t timeout_ns; /* what is left of it after the nap */
	uint64_t most_events;
	const void *mask;  /* the call's signal mask, or NULL */
	size_t mask_bytes; /* as passed to the kernel; 0 where the C library passes it */
	int slept;
	uint64_t began_ns; /* behind the sleep */
};

/* Whether calls are paced at all: not before the parameters are known. */
int is_paced(void);

/* The thread's last return, for the call to fill. */
struct last *own_last(void);

/* Sleeps if the rules let it. 0, or -1 where a signal ended the sleep as it would have ended the call. */
int nap(struct call *call);

/* The call returned so many events, or -1. */
void returned(struct call *call, long events);

int64_t of_milliseconds(int timeout);
/* A time that the kernel will refuse counts as none: the call then reports it itself. */
int64_t of_spec(const struct timespec *timeout);
int64_t of_value(const struct timeval *timeout);

/* Returns the rest of the call's timeout; NULL is no limit. */
struct timespec *left_of(const struct call *call, struct timespec *room);
/* Returns the rest in milliseconds, rounded up. */
int left_milliseconds(const struct call *call);
/* Writes the rest over a timeout of the program's, as the kernel writes it. */
void leave_in_spec(const struct call *call, struct timespec *timeout);
void leave_in_value(const struct call *call, struct timeval *timeout);

/* Descriptors in three sets of select. */
uint64_t count_descriptors(int count, const fd_set *one, const fd_set *two, const fd_set *three);

#endif
