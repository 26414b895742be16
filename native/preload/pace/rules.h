/* When a thread that asks for events may sleep first: the rules of pace, without a clock and without a system call.
 * crates/remedy/src/pace/rules.rs has the same rules for the rehearsal; tests/vectors.txt holds both to one behaviour. */
#ifndef PACE_RULES_H
#define PACE_RULES_H

#include <stdint.h>

/* A sleep pays where it gathers so many events: with one, a sleep and a call replace a call. */
#define PACE_LEAST_EVENTS 2
/* The interval must be at least so many times the cost of a call. */
#define PACE_DEAR_TIMES 4
/* The recent rate is that of so many intervals. */
#define PACE_RECENT 8
/* After sleeps that did not pay one after another: 2, 4, … calls without one, at most 2 to this power. */
#define PACE_MOST_STRIKES 6

/* No limit. */
#define PACE_FOR_EVER (-1)

/* What a thread knows of its own calls. All zero at first. */
struct pace_thread {
	uint64_t returned_ns;     /* when its last call returned; 0: none has */
	uint64_t recent_events;   /* in 1/1024, halved together with the time below */
	uint64_t recent_ns;
	uint32_t strikes;         /* sleeps in a row that did not pay */
	uint32_t held;            /* calls that follow without a sleep */
	uint32_t held_by;         /* why: an enum pace_why */
};

enum pace_why {
	PACE_SLEEP,
	PACE_AT_ONCE,   /* the call itself does not wait */
	PACE_FIRST,     /* no call has returned before */
	PACE_LATE,      /* the interval is over */
	PACE_SPARSE,    /* too few events would gather */
	PACE_DEAR,      /* the call costs too much for the interval */
	PACE_LEFT_OVER, /* something of the last return waits still */
	PACE_REASONS,
};

struct pace_verdict {
	enum pace_why why;
	uint64_t sleep_ns; /* 0 unless PACE_SLEEP */
};

/* Whether the thread may sleep, and for how long, before a call at `now_ns` that waits for `timeout_ns` at most
 * (PACE_FOR_EVER: without limit) and can return `most_events`. The sleep ends no later than the call's deadline.
 * `left_over`: a descriptor of the last return is still readable. */
struct pace_verdict pace_decide(const struct pace_thread *thread, uint64_t interval_ns, uint64_t now_ns,
                                int64_t timeout_ns, uint64_t most_events, int left_over);

/* A call returned at `now_ns` with `events`, or failed (below 0). `slept`: a sleep came before the call, which then began
 * at `began_ns`: the call says whether the sleep paid. */
void pace_returned(struct pace_thread *thread, uint64_t interval_ns, uint64_t now_ns, int64_t events, int slept,
                   uint64_t began_ns);

/* What is left of a timeout after a sleep. */
int64_t pace_left(int64_t timeout_ns, uint64_t slept_ns);

#endif
