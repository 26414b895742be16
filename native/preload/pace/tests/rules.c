/* Holds the rules to the vectors on standard input; prints each line that disagrees, and how many decisions there
 * were. */
#include "../rules.h"
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

static const char *const words[PACE_REASONS] = { "sleep", "at-once", "first", "late", "sparse", "dear", "no-gain",
                                                   "left-over" };

static struct pace_thread thread;
static struct pace_aim aim;
static unsigned decisions, wrong;

static void check(const char *line, int agrees)
{
	decisions++;
	if (agrees)
		return;
	wrong++;
	printf("disagrees: %s", line);
}

static int is_known(const char *line)
{
	uint64_t count, now, most, sleep, began, slept;
	int64_t events, timeout, rest;
	int left_over;
	char why[16];
	if (sscanf(line, "interval %" SCNu64, &now) == 1) {
		thread = (struct pace_thread){ 0 };
		aim = (struct pace_aim){ .interval_ns = now };
	} else if (sscanf(line, "budget %" SCNu64, &now) == 1) {
		thread = (struct pace_thread){ 0 };
		aim = (struct pace_aim){ .budget_ns = now };
	} else if (sscanf(line, "polls %" SCNu64, &now) == 1) {
		pace_polled(&thread, now);
	} else if (sscanf(line, "cpu %" SCNu64, &now) == 1) {
		pace_next_phase(&thread, now);
	} else if (sscanf(line, "phases %" SCNu64 " %" SCNu64 " %" SCNu64, &count, &now, &sleep) == 3) {
		for (; count; count--) {
			pace_returned(&thread, aim, now, PACE_PHASE_EVENTS, 0, 0);
			pace_next_phase(&thread, thread.trial.began_cpu_ns + sleep);
		}
	} else if (sscanf(line, "phase-ends %" SCNu64, &now) == 1) {
		check(line, pace_phase_ends(&thread) == (int)now);
	} else if (sscanf(line, "returned %" SCNu64 " %" SCNd64, &now, &events) == 2) {
		pace_returned(&thread, aim, now, events, 0, 0);
	} else if (sscanf(line, "paid %" SCNu64 " %" SCNd64 " %" SCNu64, &now, &events, &began) == 3) {
		pace_returned(&thread, aim, now, events, 1, began);
	} else if (sscanf(line, "decide %" SCNu64 " %" SCNd64 " %" SCNu64 " %d = %15s %" SCNu64, &now, &timeout, &most,
	                  &left_over, why, &sleep) == 6) {
		struct pace_verdict verdict = pace_decide(&thread, aim, now, timeout, most, left_over);
		check(line, strcmp(words[verdict.why], why) == 0 && verdict.sleep_ns == sleep);
	} else if (sscanf(line, "left %" SCNd64 " %" SCNu64 " = %" SCNd64, &timeout, &slept, &rest) == 3) {
		check(line, pace_left(timeout, slept) == rest);
	} else {
		return *line == '#' || *line == '\n';
	}
	return 1;
}

int main(void)
{
	char line[256];
	while (fgets(line, sizeof line, stdin)) {
		if (!is_known(line)) {
			printf("not a vector: %s", line);
			wrong++;
		}
	}
	printf("%u decisions\n", decisions);
	return wrong != 0;
}
