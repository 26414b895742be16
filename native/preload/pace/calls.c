/* The poll family of the C library, with a least interval between a thread's calls: a server that handles what gathered
 * in an interval makes one call for it instead of many. */
#define _GNU_SOURCE
#include "../kit/kit.h"
#include "nap.h"
#include "real.h"
#include <errno.h>

/* A call without descriptors is a sleep of the program's own. */
static int passes(uint64_t descriptors)
{
	need_real();
	return !is_paced() || descriptors == 0;
}

EXPORT int poll(struct pollfd *polled, nfds_t count, int timeout)
{
	if (passes(count))
		return real.poll(polled, count, timeout);
	struct call call = { .timeout_ns = of_milliseconds(timeout), .most_events = count };
	struct timespec left;
	int events = -1;
	if (nap(&call) == 0) {
		events = call.slept ? real.ppoll(polled, count, left_of(&call, &left), NULL) : real.poll(polled, count, timeout);
		note_polled(own_last(), polled, count, events);
	}
	returned(&call, events);
	return events;
}

EXPORT int ppoll(struct pollfd *polled, nfds_t count, const struct timespec *timeout, const sigset_t *mask)
{
	if (passes(count))
		return real.ppoll(polled, count, timeout, mask);
	struct call call = { .timeout_ns = of_spec(timeout), .most_events = count, .mask = mask };
	struct timespec left;
	int events = -1;
	if (nap(&call) == 0) {
		events = real.ppoll(polled, count, call.slept ? left_of(&call, &left) : timeout, mask);
		note_polled(own_last(), polled, count, events);
	}
	returned(&call, events);
	return events;
}

/* The compiler calls this where the array's size is known. The C library's own ends the program if it is too small. */
EXPORT int __poll_chk(struct pollfd *polled, nfds_t count, int timeout, size_t bytes)
{
	need_real();
	return bytes / sizeof *polled < count ? real.poll_chk(polled, count, timeout, bytes) : poll(polled, count, timeout);
}

EXPORT int __ppoll_chk(struct pollfd *polled, nfds_t count, const struct timespec *timeout, const sigset_t *mask, size_t bytes)
{
	need_real();
	return bytes / sizeof *polled < count ? real.ppoll_chk(polled, count, timeout, mask, bytes)
	                                     : ppoll(polled, count, timeout, mask);
}

EXPORT int select(int count, fd_set *readable, fd_set *writable, fd_set *urgent, struct timeval *timeout)
{
	uint64_t descriptors = count_descriptors(count, readable, writable, urgent);
	if (passes(descriptors))
		return real.select(count, readable, writable, urgent, timeout);
	struct call call = { .timeout_ns = of_value(timeout), .most_events = descriptors };
	int events = -1, interrupted = nap(&call);
	leave_in_value(&call, timeout);
	if (!interrupted) {
		events = real.select(count, readable, writable, urgent, timeout);
		note_selected(own_last(), readable, count, events);
	}
	returned(&call, events);
	return events;
}

EXPORT int pselect(int count, fd_set *readable, fd_set *writable, fd_set *urgent, const struct timespec *timeout,
                   const sigset_t *mask)
{
	uint64_t descriptors = count_descriptors(count, readable, writable, urgent);
	if (passes(descriptors))
		return real.pselect(count, readable, writable, urgent, timeout, mask);
	struct call call = { .timeout_ns = of_spec(timeout), .most_events = descriptors, .mask = mask };
	struct timespec left;
	int events = -1;
	if (nap(&call) == 0) {
		events = real.pselect(count, readable, writable, urgent, call.slept ? left_of(&call, &left) : timeout, mask);
		note_selected(own_last(), readable, count, events);
	}
	returned(&call, events);
	return events;
}

/* After a sleep: what is left of a timeout is no whole number of milliseconds, and kernels before 5.11 take no
 * other. */
static int epoll_rest(int set, struct epoll_event *events, int most, const struct call *call)
{
	struct timespec left;
	if (real.epoll_pwait2) {
		int count = real.epoll_pwait2(set, events, most, left_of(call, &left), call->mask);
		if (count >= 0 || errno != ENOSYS)
			return count;
	}
	return real.epoll_pwait(set, events, most, left_milliseconds(call), call->mask);
}

static uint64_t most_events(int most)
{
	return most > 0 ? (uint64_t)most : 0;
}

EXPORT int epoll_wait(int set, struct epoll_event *events, int most, int timeout)
{
	if (passes(most_events(most)))
		return real.epoll_wait(set, events, most, timeout);
	struct call call = { .timeout_ns = of_milliseconds(timeout), .most_events = most_events(most) };
	int count = -1;
	if (nap(&call) == 0) {
		count = call.slept ? epoll_rest(set, events, most, &call) : real.epoll_wait(set, events, most, timeout);
		note_epolled(own_last(), set, events, count);
	}
	returned(&call, count);
	return count;
}

EXPORT int epoll_pwait(int set, struct epoll_event *events, int most, int timeout, const sigset_t *mask)
{
	if (passes(most_events(most)))
		return real.epoll_pwait(set, events, most, timeout, mask);
	struct call call = { .timeout_ns = of_milliseconds(timeout), .most_events = most_events(most), .mask = mask };
	int count = -1;
	if (nap(&call) == 0) {
		count = call.slept ? epoll_rest(set, events, most, &call) : real.epoll_pwait(set, events, most, timeout, mask);
		note_epolled(own_last(), set, events, count);
	}
	returned(&call, count);
	return count;
}

EXPORT int epoll_pwait2(int set, struct epoll_event *events, int most, const struct timespec *timeout, const sigset_t *mask)
{
	need_real();
	if (!real.epoll_pwait2) {
		errno = ENOSYS;
		return -1;
	}
	if (passes(most_events(most)))
		return real.epoll_pwait2(set, events, most, timeout, mask);
	struct call call = { .timeout_ns = of_spec(timeout), .most_events = most_events(most), .mask = mask };
	struct timespec left;
	int count = -1;
	if (nap(&call) == 0) {
		count = real.epoll_pwait2(set, events, most, call.slept ? left_of(&call, &left) : timeout, mask);
		note_epolled(own_last(), set, events, count);
	}
	returned(&call, count);
	return count;
}

EXPORT int epoll_ctl(int set, int operation, int descriptor, struct epoll_event *event)
{
	need_real();
	int done = real.epoll_ctl(set, operation, descriptor, event);
	if (done == 0 && is_paced())
		learn(set, operation, descriptor, event);
	return done;
}
