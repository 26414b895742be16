#define _GNU_SOURCE
#include "nap.h"
#include "../kit/kit.h"
#include "real.h"
#include <errno.h>
#include <limits.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>

#define SECOND 1000000000ll

static struct pace_aim aim; /* both 0: not paced */

/* Counters of all threads lie in one page: they are added to there before a sleep, and otherwise once in so many calls. */
#define KEPT_BACK 64
struct own {
	struct pace_thread rules;
	struct last last;
	uint64_t kept[COUNTERS];
	unsigned calls_kept;
	int registered; /* its end will be reported */
};
static __thread struct own own __attribute__((tls_model("initial-exec")));
static pthread_key_t thread_ends;
static int reports_ends;

static void hand_over(void *unused)
{
	(void)unused;
	for (unsigned i = 0; i < COUNTERS; i++) {
		if (own.kept[i])
			count(i, own.kept[i]);
		own.kept[i] = 0;
	}
	own.calls_kept = 0;
}

/* Not its clock either: a child's CPU time begins at 0. */
static void forget_parents(void)
{
	own.rules = (struct pace_thread){ 0 };
	memset(own.kept, 0, sizeof own.kept);
	own.calls_kept = 0;
}

__attribute__((constructor)) static void begin(void)
{
	need_real();
	const char *list = getenv("NEARMISS_PACE_PRELOAD");
	if (!list)
		return;
	announce(list, "pace");
	reports_ends = pthread_key_create(&thread_ends, hand_over) == 0;
	pthread_atfork(NULL, NULL, forget_parents);
	uint64_t interval = parameter(list, "interval", 10), budget = parameter(list, "budget", 10);
	if (interval <= SECOND && budget <= SECOND)
		aim = (struct pace_aim){ interval, budget };
}

__attribute__((destructor)) static void end(void)
{
	hand_over(NULL);
}

int is_paced(void)
{
	return aim.interval_ns || aim.budget_ns;
}

struct last *own_last(void)
{
	return &own.last;
}

static uint64_t clock_ns(clockid_t clock)
{
	struct timespec now;
	clock_gettime(clock, &now);
	return (uint64_t)now.tv_sec * SECOND + (uint64_t)now.tv_nsec;
}

static void note(unsigned counter)
{
	if (!own.registered) {
		own.registered = 1;
		if (reports_ends)
			pthread_setspecific(thread_ends, &own);
	}
	own.kept[counter]++;
	own.calls_kept++;
}

/* ppoll without descriptors is a sleep under a signal mask, which sets the mask and sleeps in one step. The program's
 * timer slack holds for it as for the call itself. */
static int sleep_for(const struct call *call, uint64_t sleep_ns)
{
	struct timespec rest = { (time_t)(sleep_ns / SECOND), (long)(sleep_ns % SECOND) };
	if (call->mask_bytes)
		return (int)real.syscall(SYS_ppoll, NULL, 0L, &rest, call->mask, call->mask_bytes);
	return real.ppoll(NULL, 0, &rest, call->mask);
}

int nap(struct call *call)
{
	uint64_t now = clock_ns(CLOCK_MONOTONIC);
	pace_polled(&own.rules, now);
	struct pace_verdict verdict = pace_decide(&own.rules, aim, now, call->timeout_ns, call->most_events, 0);
	unsigned why = verdict.why;
	if (why == PACE_SLEEP) {
		enum left_over left = poll_left_over(&own.last);
		if (left == UNKNOWN)
			why = NOT_KNOWN;
		else if (left == LEFT)
			why = pace_decide(&own.rules, aim, now, call->timeout_ns, call->most_events, 1).why;
	}
	note(why);
	if (why != PACE_SLEEP)
		return 0;
	hand_over(NULL);
	int ended = sleep_for(call, verdict.sleep_ns);
	call->slept = 1;
	call->began_ns = clock_ns(CLOCK_MONOTONIC);
	own.kept[SLEPT_NS] += call->began_ns - now;
	call->timeout_ns = pace_left(call->timeout_ns, call->began_ns - now);
	return ended;
}

void returned(struct call *call, long events)
{
	pace_returned(&own.rules, aim, clock_ns(CLOCK_MONOTONIC), events, call->slept, call->began_ns);
	if (pace_phase_ends(&own.rules))
		pace_next_phase(&own.rules, clock_ns(CLOCK_THREAD_CPUTIME_ID));
	if (events > 0)
		own.kept[EVENTS] += (uint64_t)events;
	else
		own.last.count = 0;
	if (own.calls_kept >= KEPT_BACK)
		hand_over(NULL);
}

int64_t of_milliseconds(int timeout)
{
	return timeout < 0 ? PACE_FOR_EVER : timeout * 1000000ll;
}

static int64_t of_parts(int64_t seconds, int64_t nanoseconds)
{
	if (seconds < 0 || nanoseconds < 0 || nanoseconds >= SECOND)
		return 0;
	return seconds >= INT64_MAX / SECOND ? PACE_FOR_EVER : seconds * SECOND + nanoseconds;
}

int64_t of_spec(const struct timespec *timeout)
{
	return timeout ? of_parts(timeout->tv_sec, timeout->tv_nsec) : PACE_FOR_EVER;
}

/* The kernel takes more than a million microseconds for whole seconds. */
int64_t of_value(const struct timeval *timeout)
{
	if (!timeout)
		return PACE_FOR_EVER;
	if (timeout->tv_sec < 0 || timeout->tv_usec < 0)
		return 0;
	return of_parts(timeout->tv_sec + timeout->tv_usec / 1000000, timeout->tv_usec % 1000000 * 1000);
}

struct timespec *left_of(const struct call *call, struct timespec *room)
{
	if (call->timeout_ns < 0)
		return NULL;
	*room = (struct timespec){ (time_t)(call->timeout_ns / SECOND), (long)(call->timeout_ns % SECOND) };
	return room;
}

int left_milliseconds(const struct call *call)
{
	int64_t whole = call->timeout_ns / 1000000 + (call->timeout_ns % 1000000 != 0);
	return call->timeout_ns < 0 ? -1 : whole > INT_MAX ? INT_MAX : (int)whole;
}

void leave_in_spec(const struct call *call, struct timespec *timeout)
{
	if (call->slept && timeout)
		left_of(call, timeout);
}

void leave_in_value(const struct call *call, struct timeval *timeout)
{
	struct timespec left;
	if (call->slept && timeout && left_of(call, &left))
		*timeout = (struct timeval){ left.tv_sec, left.tv_nsec / 1000 };
}

static uint64_t count_in(const void *set, int count)
{
	const unsigned char *bytes = set;
	uint64_t total = 0;
	for (int i = 0; i < count / 8; i++)
		total += (unsigned)__builtin_popcount(bytes[i]);
	if (count % 8)
		total += (unsigned)__builtin_popcount(bytes[count / 8] & ((1u << count % 8) - 1));
	return total;
}

uint64_t count_descriptors(int count, const fd_set *one, const fd_set *two, const fd_set *three)
{
	const void *const sets[] = { one, two, three };
	uint64_t total = 0;
	for (int set = 0; set < 3 && count > 0; set++)
		total += sets[set] ? count_in(sets[set], count) : 0;
	return total;
}
