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

uint64_t pace_interval(const struct pace_thread *thread, struct pace_aim aim)
{
	return aim.budget_ns ? most(since(thread->busy_ns, aim.budget_ns), PACE_SHORTEST_NS) : aim.interval_ns;
}

/* A longer time counts at once, and fades by a part in sixteen a call. */
void pace_polled(struct pace_thread *thread, uint64_t now_ns)
{
	if (thread->returned_ns)
		thread->busy_ns = most(thread->busy_ns - thread->busy_ns / 16, since(thread->returned_ns, now_ns));
}

struct pace_verdict pace_decide(const struct pace_thread *thread, struct pace_aim aim, uint64_t now_ns,
                                int64_t timeout_ns, uint64_t most_events, int left_over)
{
	if (timeout_ns == 0)
		return awake(PACE_AT_ONCE);
	if (!thread->returned_ns)
		return awake(PACE_FIRST);
	uint64_t interval_ns = pace_interval(thread, aim), passed = since(thread->returned_ns, now_ns);
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
	if (thread->trial.way == PACE_WITHOUT)
		return awake(PACE_NO_GAIN);
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
	} else if (cost_ns > interval_ns) {
		strike(thread, PACE_DEAR);
	} else {
		thread->strikes = 0;
	}
}

static void note_rate(struct pace_thread *thread, uint64_t recent_ns, uint64_t now_ns, int64_t events)
{
	if (!thread->returned_ns)
		return; /* these events took an unknown time */
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

void pace_returned(struct pace_thread *thread, struct pace_aim aim, uint64_t now_ns, int64_t events, int slept,
                   uint64_t began_ns)
{
	uint64_t interval_ns = pace_interval(thread, aim);
	note_rate(thread, PACE_RECENT * interval_ns, now_ns, events);
	thread->returned_ns = now_ns;
	if (slept && events >= 0) {
		judge(thread, interval_ns, since(began_ns, now_ns), events);
	} else if (!slept && thread->held) {
		thread->held--;
	}
	if (events > 0)
		thread->trial.events += least((uint64_t)events, MOST_RECENT);
}

int pace_phase_ends(const struct pace_thread *thread)
{
	return !thread->trial.began || thread->trial.events >= PACE_PHASE_EVENTS;
}

/* Both ways in turn at first, later the cheaper one but for a phase now and then. */
static enum pace_way next_way(struct pace_trial *trial)
{
	const uint32_t *phases = trial->phases;
	if (phases[PACE_WITHOUT] < PACE_PHASES_EACH)
		return phases[PACE_WITHOUT] < phases[PACE_WITH_SLEEPS] ? PACE_WITHOUT : PACE_WITH_SLEEPS;
	uint64_t without = trial->cost[PACE_WITHOUT];
	enum pace_way cheaper = trial->cost[PACE_WITH_SLEEPS] < without - without / PACE_LEAST_GAIN ? PACE_WITH_SLEEPS : PACE_WITHOUT;
	if (cheaper != trial->cheaper) {
		trial->cheaper = cheaper;
		trial->since_other = trial->doubled = 0;
	}
	if (trial->since_other < PACE_PHASES_BETWEEN << trial->doubled) {
		trial->since_other++;
		return cheaper;
	}
	trial->since_other = 0;
	trial->doubled = (uint32_t)least(trial->doubled + 1, PACE_MOST_DOUBLED);
	return cheaper == PACE_WITHOUT ? PACE_WITH_SLEEPS : PACE_WITHOUT;
}

/* A phase of much other work (a thousand connections accepted) must not spoil the comparison for long: it counts as twice
 * the cost so far at most, and what costs less than half counts at once. */
static void note_cost(struct pace_trial *trial, uint64_t cost)
{
	uint64_t *mean = &trial->cost[trial->way];
	uint64_t twice = *mean > UINT64_MAX / 2 ? UINT64_MAX : *mean * 2;
	int at_once = !trial->phases[trial->way] || cost < *mean / 2;
	*mean = at_once ? cost : *mean - *mean / 4 + least(cost, twice) / 4;
	trial->phases[trial->way]++;
}

void pace_next_phase(struct pace_thread *thread, uint64_t cpu_ns)
{
	struct pace_trial *trial = &thread->trial;
	if (trial->began) {
		uint64_t spent = least(since(trial->began_cpu_ns, cpu_ns), UINT64_MAX / ONE_EVENT);
		note_cost(trial, spent * ONE_EVENT / most(trial->events, 1));
		trial->way = next_way(trial);
	}
	trial->began = 1;
	trial->began_cpu_ns = cpu_ns;
	trial->events = 0;
}

int64_t pace_left(int64_t timeout_ns, uint64_t slept_ns)
{
	if (timeout_ns < 0)
		return timeout_ns;
	return (int64_t)since(slept_ns, (uint64_t)timeout_ns);
}
