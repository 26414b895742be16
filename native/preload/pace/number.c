/* The poll calls by number, through the C library's syscall(). */
#define _GNU_SOURCE
#include "../kit/kit.h"
#include "nap.h"
#include "real.h"
#include <errno.h>
#include <stdarg.h>
#include <sys/syscall.h>
#include <unistd.h>

#define KERNEL_MASK_BYTES 8

enum kind { OTHER, POLLS, SELECTS, EPOLLS };

/* The sixth argument of pselect6. */
struct mask_at {
	const void *mask;
	size_t bytes;
};

static enum kind polls(struct call *call, const long *given, int64_t timeout_ns)
{
	*call = (struct call){ .timeout_ns = timeout_ns, .most_events = (uint64_t)given[1], .mask_bytes = KERNEL_MASK_BYTES };
	return given[1] ? POLLS : OTHER;
}

static enum kind selects(struct call *call, const long *given, int64_t timeout_ns)
{
	const fd_set *const *sets = (const fd_set *const *)&given[1];
	uint64_t descriptors = count_descriptors((int)given[0], sets[0], sets[1], sets[2]);
	*call = (struct call){ .timeout_ns = timeout_ns, .most_events = descriptors, .mask_bytes = KERNEL_MASK_BYTES };
	return descriptors ? SELECTS : OTHER;
}

static enum kind epolls(struct call *call, const long *given, int64_t timeout_ns)
{
	uint64_t most = (int)given[2] > 0 ? (uint64_t)given[2] : 0;
	*call = (struct call){ .timeout_ns = timeout_ns, .most_events = most, .mask_bytes = KERNEL_MASK_BYTES };
	return most ? EPOLLS : OTHER;
}

static void masked(struct call *call, const void *mask, size_t bytes)
{
	call->mask = mask;
	call->mask_bytes = mask ? bytes : KERNEL_MASK_BYTES;
}

static enum kind describe(struct call *call, long number, const long *given)
{
	enum kind kind = OTHER;
	switch (number) {
#ifdef SYS_poll
	case SYS_poll:
		return polls(call, given, of_milliseconds((int)given[2]));
	case SYS_select:
		return selects(call, given, of_value((const struct timeval *)given[4]));
	case SYS_epoll_wait:
		return epolls(call, given, of_milliseconds((int)given[3]));
#endif
	case SYS_ppoll:
		kind = polls(call, given, of_spec((const struct timespec *)given[2]));
		masked(call, (const void *)given[3], (size_t)given[4]);
		return kind;
	case SYS_pselect6: {
		const struct mask_at *at = (const struct mask_at *)given[5];
		kind = selects(call, given, of_spec((const struct timespec *)given[4]));
		masked(call, at ? at->mask : NULL, at ? at->bytes : 0);
		return kind;
	}
	case SYS_epoll_pwait:
		kind = epolls(call, given, of_milliseconds((int)given[3]));
		masked(call, (const void *)given[4], (size_t)given[5]);
		return kind;
	case SYS_epoll_pwait2:
		kind = epolls(call, given, of_spec((const struct timespec *)given[3]));
		masked(call, (const void *)given[4], (size_t)given[5]);
		return kind;
	}
	return OTHER;
}

static long pass(long number, const long *given)
{
	return real.syscall(number, given[0], given[1], given[2], given[3], given[4], given[5]);
}

/* Three of the calls, by number, write what is left into the program's own timeout. */
static int write_left(const struct call *call, long number, const long *given)
{
	switch (number) {
#ifdef SYS_select
	case SYS_select:
		leave_in_value(call, (struct timeval *)given[4]);
		return 1;
#endif
	case SYS_pselect6:
		leave_in_spec(call, (struct timespec *)given[4]);
		return 1;
	case SYS_ppoll:
		leave_in_spec(call, (struct timespec *)given[2]);
		return 1;
	}
	return 0;
}

/* Behind a sleep. Milliseconds are too coarse for what is left, and go to the sibling that takes a finer timeout. */
static long rest(struct call *call, enum kind kind, long number, long *given)
{
	struct timespec left;
	if (write_left(call, number, given))
		return pass(number, given);
	if (kind == POLLS)
		return real.syscall(SYS_ppoll, given[0], given[1], left_of(call, &left), NULL, 0L);
	long count = real.syscall(SYS_epoll_pwait2, given[0], given[1], given[2], left_of(call, &left), call->mask, call->mask_bytes);
	if (count >= 0 || errno != ENOSYS)
		return count;
	given[3] = left_milliseconds(call);
	return pass(number, given);
}

static void note_events(enum kind kind, const long *given, long events)
{
	if (kind == POLLS)
		note_polled(own_last(), (const struct pollfd *)given[0], (size_t)given[1], (int)events);
	else if (kind == SELECTS)
		note_selected(own_last(), (const fd_set *)given[1], (int)given[0], (int)events);
	else
		note_epolled(own_last(), (int)given[0], (const struct epoll_event *)given[1], (int)events);
}

static long paced(struct call *call, enum kind kind, long number, long *given)
{
	long events = -1;
	if (nap(call) == 0) {
		events = call->slept ? rest(call, kind, number, given) : pass(number, given);
		note_events(kind, given, events);
	} else {
		write_left(call, number, given);
	}
	returned(call, events);
	return events;
}

EXPORT long syscall(long number, ...)
{
	long given[6];
	va_list list;
	va_start(list, number);
	for (int i = 0; i < 6; i++)
		given[i] = va_arg(list, long);
	va_end(list);
	need_real();
	struct call call;
	enum kind kind = is_paced() ? describe(&call, number, given) : OTHER;
	if (kind != OTHER)
		return paced(&call, kind, number, given);
	long done = pass(number, given);
	if (number == SYS_epoll_ctl && done == 0 && is_paced())
		learn((int)given[0], (int)given[1], (int)given[2], (const struct epoll_event *)given[3]);
	return done;
}
