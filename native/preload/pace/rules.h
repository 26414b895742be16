/* Rules for when a polling thread may sleep first: the rules of pace, without a clock and without a system call.
 * libs/pace has the same rules for servers and for the rehearsal; tests/vectors.txt holds both to one behaviour. */
#ifndef PACE_RULES_H
#define PACE_RULES_H

#include <stdint.h>

/* A sleep pays where it gathers so many events: with one, a sleep and a call replace a call. */
#define PACE_LEAST_EVENTS 2
/* The recent rate is that of so many intervals. */
#define PACE_RECENT 8
/* After sleeps that did not pay one after another: 2, 4, … calls without one, at most 2 to this power. */
#define PACE_MOST_STRIKES 6
/* A trial compares the thread's CPU time for an event with sleeps and without, so many events at a time, in turn. */
#define PACE_PHASE_EVENTS 256
/* So often each way before the comparison counts. */
#define PACE_PHASES_EACH 2
/* Then so many phases of the cheaper way to one of the other. Each phase of the other that changes nothing doubles them,
 * this often. */
#define PACE_PHASES_BETWEEN 2u
#define PACE_MOST_DOUBLED 4
/* Sleeps must save one part in so many. */
#define PACE_LEAST_GAIN 32
/* The shortest interval that a budget is spent on. */
#define PACE_SHORTEST_NS 50000

/* No limit. */
#define PACE_FOR_EVER (-1)

/* How far apart a thread's calls are: at an interval, or as far as what is added to an event stays within a budget. One
 * of the two is 0. */
struct pace_aim {
	uint64_t interval_ns;
	uint64_t budget_ns;
};

enum pace_way { PACE_WITH_SLEEPS, PACE_WITHOUT, PACE_WAYS };

/* Savings of sleeps, by the CPU clock of the thread: it counts the program's work on the events too. */
struct pace_trial {
	uint64_t events;          /* in this phase */
	uint64_t began_cpu_ns;
	uint64_t cost[PACE_WAYS]; /* of an event, in 1/1024 ns; a quarter of it is the last phase's */
	uint32_t phases[PACE_WAYS];
	uint32_t since_other;     /* phases of the cheaper way in a row */
	uint32_t doubled;
	uint32_t cheaper;         /* an enum pace_way */
	uint32_t way;             /* an enum pace_way */
	uint32_t began;
};

/* A thread's record of its own calls. All zero at first. */
struct pace_thread {
	uint64_t returned_ns;     /* when its last call returned; 0: none has */
	uint64_t recent_events;   /* in 1/1024, halved together with the time below */
	uint64_t recent_ns;
	uint32_t strikes;         /* sleeps in a row that did not pay */
	uint32_t held;            /* calls that follow without a sleep */
	uint32_t held_by;         /* why: an enum pace_why */
	uint64_t busy_ns;         /* from a return to the next call; the longest lately */
	struct pace_trial trial;
};

enum pace_why {
	PACE_SLEEP,
	PACE_AT_ONCE,   /* the call itself does not wait */
	PACE_FIRST,     /* no call has returned before */
	PACE_LATE,      /* the interval is over */
	PACE_SPARSE,    /* too few events would gather */
	PACE_DEAR,      /* the call itself takes longer than the interval */
	PACE_NO_GAIN,   /* sleeps cost what they save, or this is the half of the trial without */
	PACE_LEFT_OVER, /* something of the last return waits still */
	PACE_REASONS,
};

struct pace_verdict {
	enum pace_why why;
	uint64_t sleep_ns; /* 0 unless PACE_SLEEP */
};

/* The interval: the budget less the time that the thread is busy with what gathered, since the last event waits for both. */
uint64_t pace_interval(const struct pace_thread *thread, struct pace_aim aim);

/* Records that the program polls for events at `now_ns`. Before pace_decide. */
void pace_polled(struct pace_thread *thread, uint64_t now_ns);

/* Whether the thread may sleep, and for how long, before a call at `now_ns` that waits for `timeout_ns` at most
 * (PACE_FOR_EVER: without limit) and can return `most_events`. The sleep ends no later than the call's deadline.
 * `left_over`: a descriptor of the last return is still readable. */
struct pace_verdict pace_decide(const struct pace_thread *thread, struct pace_aim aim, uint64_t now_ns,
                                int64_t timeout_ns, uint64_t most_events, int left_over);

/* A call returned at `now_ns` with `events`, or failed (below 0). `slept`: a sleep came before the call, which then
 * began at `began_ns`: the call shows whether the sleep paid. */
void pace_returned(struct pace_thread *thread, struct pace_aim aim, uint64_t now_ns, int64_t events, int slept,
                   uint64_t began_ns);

/* Whether a phase of the trial ends with this return: the caller then reads the thread's CPU clock. */
int pace_phase_ends(const struct pace_thread *thread);

/* The next phase begins. */
void pace_next_phase(struct pace_thread *thread, uint64_t cpu_ns);

/* Returns the rest of a timeout after a sleep. */
int64_t pace_left(int64_t timeout_ns, uint64_t slept_ns);

#endif
