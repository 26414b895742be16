#include "rules.h"

#define ONE_EVENT 1024
/* With intervals of a second at most, no product below leaves 64 bits. */
#define MOST_RECENT (1ull << 32)

static struct pace_verdict awake(enum pace_why why)
{
	return (struct pace_verdict){ why, 0 };
}

static uint64_t least(uint64_t one, uint64_t other)
{
	return one < other ? one : other;
}

static uint64_t most(uint64_t one, uint64_t other)
{
	return one > other ? one : other;
}

static uint64_t since(uint64_t earlier, uint64_t now)
{
	return now > earlier ? now - earlier : 0;
}

struct pace_verdict pace_decide(const struct pace_thread *thread, uint64_t interval_ns, uint64_t now_ns,
                                int64_t timeout_ns, uint64_t most_events, int left_over)
{
	if (timeout_ns == 0)
		return awake(PACE_AT_ONCE);
	if (!thread->returned_ns)
		return awake(PACE_FIRST);
	uint64_t passed = since(thread->returned_ns, now_ns);
	if (passed >= interval_ns)
		return awake(PACE_LATE);
	if (thread->held)
		return awake(thread->held_by);
	uint64_t sleep = interval_ns - passed;
	if (timeout_ns > 0)
		sleep = least(sleep, (uint64_t)timeout_ns);
	if (most_events < PACE_LEAST_EVENTS ||
	    thread->recent_events * sleep < PACE_LEAST_EVENTS * ONE_EVENT * most(thread->recent_ns, 1))
		return awake(PACE_SPARSE);
	if (left_over)
		return awake(PACE_LEFT_OVER);
	return (struct pace_verdict){ PACE_SLEEP, sleep };
}

static void strike(struct pace_thread *thread, enum pace_why why)
{
	if (thread->strikes < PACE_MOST_STRIKES)
		thread->strikes++;
	thread->held = 1u << thread->strikes;
	thread->held_by = why;
}

static void judge(struct pace_thread *thread, uint64_t interval_ns, uint64_t cost_ns, int64_t events)
{
	if (events < PACE_LEAST_EVENTS) {
		strike(thread, PACE_SPARSE);
	} else if (cost_ns * PACE_DEAR_TIMES > interval_ns) {
		strike(thread, PACE_DEAR);
	} else {
		thread->strikes = 0;
	}
}

static void note_rate(struct pace_thread *thread, uint64_t recent_ns, uint64_t now_ns, int64_t events)
{
	if (!thread->returned_ns)
		return; /* these events took nobody knows how long */
	uint64_t passed = since(thread->returned_ns, now_ns);
	if (passed > recent_ns)
		thread->recent_ns = thread->recent_events = 0;
	thread->recent_ns += passed;
	if (events > 0)
		thread->recent_events += least((uint64_t)events, MOST_RECENT / ONE_EVENT) * ONE_EVENT;
	while (thread->recent_ns > recent_ns || thread->recent_events > MOST_RECENT) {
		thread->recent_ns /= 2;
		thread->recent_events /= 2;
	}
}

void pace_returned(struct pace_thread *thread, uint64_t interval_ns, uint64_t now_ns, int64_t events, int slept,
                   uint64_t began_ns)
{
	note_rate(thread, PACE_RECENT * interval_ns, now_ns, events);
	thread->returned_ns = now_ns;
	if (slept && events >= 0) {
		judge(thread, interval_ns, since(began_ns, now_ns), events);
	} else if (!slept && thread->held) {
		thread->held--;
	}
}

int64_t pace_left(int64_t timeout_ns, uint64_t slept_ns)
{
	if (timeout_ns < 0)
		return timeout_ns;
	return (int64_t)since(slept_ns, (uint64_t)timeout_ns);
}
