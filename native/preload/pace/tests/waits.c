/* Makes each call of the poll family do the same, in a thread of its own: `waits SCENARIO`. Prints what was wrong, and
 * how many calls did right. Two calls make the rate of a thread known; the third is the one in question. */
#define _GNU_SOURCE
#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/select.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#define PAIRS 8
#define FOREVER (-1)

enum kind {
	POLL, PPOLL, POLL_CHK, PPOLL_CHK, SELECT, PSELECT, EPOLL_WAIT, EPOLL_PWAIT, EPOLL_PWAIT2,
	N_POLL, N_PPOLL, N_SELECT, N_PSELECT, N_EPOLL_WAIT, N_EPOLL_PWAIT, N_EPOLL_PWAIT2, KINDS,
};

static const char *const names[KINDS] = {
	"poll", "ppoll", "__poll_chk", "__ppoll_chk", "select", "pselect", "epoll_wait", "epoll_pwait", "epoll_pwait2",
	"SYS_poll", "SYS_ppoll", "SYS_select", "SYS_pselect6", "SYS_epoll_wait", "SYS_epoll_pwait", "SYS_epoll_pwait2",
};

extern int __poll_chk(struct pollfd *, nfds_t, int, size_t);
extern int __ppoll_chk(struct pollfd *, nfds_t, const struct timespec *, const sigset_t *, size_t);

struct probe {
	enum kind kind;
	const char *scenario;
	int in[PAIRS], out[PAIRS], set, watched;
	pthread_t thread;
	const sigset_t *mask;
	int late_writes, late_signal_ms;
	double left_ms; /* of the timeout, as the kernel wrote it back; -1: it does not */
	int right;
};

static __thread volatile sig_atomic_t handled;

static void handle(int signal)
{
	(void)signal;
	handled++;
}

static double now_ms(void)
{
	struct timespec now;
	clock_gettime(CLOCK_MONOTONIC, &now);
	return now.tv_sec * 1e3 + now.tv_nsec / 1e6;
}

static void pause_ms(int ms)
{
	struct timespec time = { ms / 1000, ms % 1000 * 1000000L };
	nanosleep(&time, NULL);
}

static int wait_selected(struct probe *p, int timeout_ms)
{
	fd_set sets;
	FD_ZERO(&sets);
	int most = 0;
	for (int i = 0; i < p->watched; i++) {
		FD_SET(p->in[i], &sets);
		most = p->in[i] >= most ? p->in[i] + 1 : most;
	}
	struct timespec spec = { timeout_ms / 1000, timeout_ms % 1000 * 1000000L };
	struct timeval value = { spec.tv_sec, spec.tv_nsec / 1000 };
	struct timespec *ts = timeout_ms < 0 ? NULL : &spec;
	struct timeval *tv = timeout_ms < 0 ? NULL : &value;
	struct { const sigset_t *mask; size_t bytes; } at = { p->mask, 8 };
	int events = p->kind == SELECT  ? select(most, &sets, NULL, NULL, tv)
	             : p->kind == PSELECT ? pselect(most, &sets, NULL, NULL, ts, p->mask)
	             : p->kind == N_SELECT ? (int)syscall(SYS_select, most, &sets, NULL, NULL, tv)
	                                   : (int)syscall(SYS_pselect6, most, &sets, NULL, NULL, ts, &at);
	if (p->kind == SELECT || p->kind == N_SELECT)
		p->left_ms = value.tv_sec * 1e3 + value.tv_usec / 1e3;
	if (p->kind == N_PSELECT)
		p->left_ms = spec.tv_sec * 1e3 + spec.tv_nsec / 1e6;
	return events;
}

static int wait_polled(struct probe *p, int timeout_ms)
{
	struct pollfd polled[PAIRS];
	for (int i = 0; i < p->watched; i++)
		polled[i] = (struct pollfd){ p->in[i], POLLIN, 0 };
	struct timespec spec = { timeout_ms / 1000, timeout_ms % 1000 * 1000000L };
	struct timespec *ts = timeout_ms < 0 ? NULL : &spec;
	nfds_t n = (nfds_t)p->watched;
	int events = p->kind == POLL        ? poll(polled, n, timeout_ms)
	             : p->kind == PPOLL     ? ppoll(polled, n, ts, p->mask)
	             : p->kind == POLL_CHK  ? __poll_chk(polled, n, timeout_ms, sizeof polled)
	             : p->kind == PPOLL_CHK ? __ppoll_chk(polled, n, ts, p->mask, sizeof polled)
	             : p->kind == N_POLL    ? (int)syscall(SYS_poll, polled, n, timeout_ms)
	                                    : (int)syscall(SYS_ppoll, polled, n, ts, p->mask, 8);
	if (p->kind == N_PPOLL)
		p->left_ms = spec.tv_sec * 1e3 + spec.tv_nsec / 1e6;
	return events;
}

static int wait_epolled(struct probe *p, int timeout_ms)
{
	struct epoll_event events[PAIRS];
	struct timespec spec = { timeout_ms / 1000, timeout_ms % 1000 * 1000000L };
	struct timespec *ts = timeout_ms < 0 ? NULL : &spec;
	switch (p->kind) {
	case EPOLL_WAIT:
		return epoll_wait(p->set, events, PAIRS, timeout_ms);
	case EPOLL_PWAIT:
		return epoll_pwait(p->set, events, PAIRS, timeout_ms, p->mask);
	case EPOLL_PWAIT2:
		return epoll_pwait2(p->set, events, PAIRS, ts, p->mask);
	case N_EPOLL_WAIT:
		return (int)syscall(SYS_epoll_wait, p->set, events, PAIRS, timeout_ms);
	case N_EPOLL_PWAIT:
		return (int)syscall(SYS_epoll_pwait, p->set, events, PAIRS, timeout_ms, p->mask, 8);
	default:
		return (int)syscall(SYS_epoll_pwait2, p->set, events, PAIRS, ts, p->mask, 8);
	}
}

static int is_select(enum kind kind)
{
	return kind == SELECT || kind == PSELECT || kind == N_SELECT || kind == N_PSELECT;
}

static int is_epoll(enum kind kind)
{
	return (kind >= EPOLL_WAIT && kind <= EPOLL_PWAIT2) || kind >= N_EPOLL_WAIT;
}

static int is_no_epoll(enum kind kind)
{
	return !is_epoll(kind);
}

static int is_masked(enum kind kind)
{
	return kind == PPOLL || kind == PPOLL_CHK || kind == PSELECT || kind == EPOLL_PWAIT || kind == EPOLL_PWAIT2 ||
	       kind == N_PPOLL || kind == N_PSELECT || kind == N_EPOLL_PWAIT || kind == N_EPOLL_PWAIT2;
}

static int wait_events(struct probe *p, int timeout_ms)
{
	p->left_ms = -1;
	return is_select(p->kind) ? wait_selected(p, timeout_ms) : is_epoll(p->kind) ? wait_epolled(p, timeout_ms) : wait_polled(p, timeout_ms);
}

static void feed(struct probe *p, int from, int to)
{
	for (int i = from; i < to; i++)
		if (send(p->out[i], "x", 1, 0) != 1)
			abort();
}

/* Reads what is there, of all but the first `but`. */
static void drain(struct probe *p, int but)
{
	char byte;
	for (int i = but; i < PAIRS; i++)
		while (recv(p->in[i], &byte, 1, MSG_DONTWAIT) == 1)
			;
}

static long register_unseen(int set, int descriptor, struct epoll_event *event)
{
	long result = SYS_epoll_ctl;
#ifdef __x86_64__
	register struct epoll_event *fourth __asm__("r10") = event;
	__asm__ volatile("syscall" : "+a"(result) : "D"((long)set), "S"((long)EPOLL_CTL_ADD), "d"((long)descriptor), "r"(fourth) : "rcx", "r11", "memory");
#endif
	return result;
}

static void open_pairs(struct probe *p)
{
	p->set = epoll_create1(0);
	for (int i = 0; i < PAIRS; i++) {
		int both[2];
		if (p->set < 0 || socketpair(AF_UNIX, SOCK_DGRAM, 0, both) != 0)
			abort();
		p->in[i] = both[0];
		p->out[i] = both[1];
		/* Half of the calls register pointers, half the descriptors themselves. */
		struct epoll_event event = { .events = EPOLLIN };
		if (p->kind % 2)
			event.data.ptr = &p->in[i];
		else
			event.data.fd = both[0];
		long done = strcmp(p->scenario, "unseen") == 0 ? register_unseen(p->set, both[0], &event)
		            : p->kind >= N_POLL ? syscall(SYS_epoll_ctl, p->set, EPOLL_CTL_ADD, both[0], &event)
		                                : epoll_ctl(p->set, EPOLL_CTL_ADD, both[0], &event);
		if (done != 0)
			abort();
	}
}

static int wrong(struct probe *p, const char *what, double figure)
{
	printf("%s, %s: %s (%g)\n", p->scenario, names[p->kind], what, figure);
	return 0;
}

/* The last return is of all but the first two: what comes there is new. */
#define NEW 2

static int warm(struct probe *p, int leave)
{
	for (int round = 0; round < 2; round++) {
		int first = round == 1 && p->watched == PAIRS ? NEW : 0;
		feed(p, first, p->watched);
		int events = wait_events(p, FOREVER);
		if (events != p->watched - first)
			return wrong(p, "events while getting warm", events);
		drain(p, round == 1 ? leave : 0);
	}
	return 1;
}

static void *help(void *given)
{
	struct probe *p = given;
	pause_ms(15);
	feed(p, 1, 1 + p->late_writes);
	if (p->late_signal_ms) {
		pause_ms(p->late_signal_ms - 15);
		pthread_kill(p->thread, SIGUSR1);
	}
	return NULL;
}

/* One call: its events (`error` for one that must fail), its time within limits. */
static int expect(struct probe *p, int timeout_ms, int events, int error, double least_ms, double most_ms)
{
	pthread_t helper;
	int helped = p->late_writes || p->late_signal_ms;
	if (helped)
		pthread_create(&helper, NULL, help, p);
	double begun = now_ms();
	errno = 0;
	int got = wait_events(p, timeout_ms), failed = errno;
	double took = now_ms() - begun;
	if (helped)
		pthread_join(helper, NULL);
	if (got != events)
		return wrong(p, "events", got);
	if (events < 0 && failed != error)
		return wrong(p, "errno", failed);
	if (took < least_ms || took > most_ms)
		return wrong(p, "milliseconds", took);
	return 1;
}

/* Under an interval of 100 ms. */
static int gather(struct probe *p)
{
	p->late_writes = 1;
	return warm(p, 0) && (feed(p, 0, 1), expect(p, FOREVER, 2, 0, 90, 1e4));
}

static int at_once(struct probe *p)
{
	return warm(p, 0) && (feed(p, 0, 1), expect(p, 0, 1, 0, 0, 60));
}

static int left_over(struct probe *p)
{
	return warm(p, NEW + 1) && expect(p, FOREVER, 1, 0, 0, 60);
}

static int near_deadline(struct probe *p)
{
	return warm(p, 0) && expect(p, 30, 0, 0, 30, 80) && (p->left_ms <= 0 || wrong(p, "left of the timeout", p->left_ms));
}

static int far_deadline(struct probe *p)
{
	return warm(p, 0) && expect(p, 150, 0, 0, 150, 220) && (p->left_ms <= 0 || wrong(p, "left of the timeout", p->left_ms));
}

static int interrupted(struct probe *p)
{
	p->late_signal_ms = 30;
	return warm(p, 0) && expect(p, 1000, -1, EINTR, 25, 90) && (handled == 1 || wrong(p, "signals handled", handled)) &&
	       (p->left_ms < 0 || (p->left_ms > 900 && p->left_ms < 980) || wrong(p, "left of the timeout", p->left_ms));
}

static int masked(struct probe *p)
{
	sigset_t blocking;
	sigemptyset(&blocking);
	sigaddset(&blocking, SIGUSR1);
	p->mask = &blocking;
	p->late_writes = 1;
	p->late_signal_ms = 30;
	return warm(p, 0) && (feed(p, 0, 1), expect(p, FOREVER, 2, 0, 90, 1e4)) &&
	       (handled == 1 || wrong(p, "signals handled", handled));
}

static int unmasked(struct probe *p)
{
	sigset_t blocking, open;
	sigemptyset(&blocking);
	sigaddset(&blocking, SIGUSR1);
	sigemptyset(&open);
	pthread_sigmask(SIG_BLOCK, &blocking, NULL);
	p->mask = &open;
	return interrupted(p);
}

static int alone(struct probe *p)
{
	p->watched = 1;
	return warm(p, 0) && (feed(p, 0, 1), expect(p, FOREVER, 1, 0, 0, 60));
}

static int in_vain(struct probe *p)
{
	int right = warm(p, 0);
	for (int i = 0; right && i < 4; i++, drain(p, 0)) {
		feed(p, i % NEW, i % NEW + 1);
		right = expect(p, FOREVER, 1, 0, i % 3 == 0 ? 90 : 0, i % 3 == 0 ? 1e4 : 60);
	}
	return right;
}

static const struct scenario {
	const char *name;
	int (*run)(struct probe *);
	int (*concerns)(enum kind);
} scenarios[] = {
	{ "gather", gather, NULL },           { "at-once", at_once, NULL },
	{ "left-over", left_over, NULL },     { "near-deadline", near_deadline, NULL },
	{ "far-deadline", far_deadline, NULL }, { "interrupted", interrupted, NULL },
	{ "masked", masked, is_masked },      { "unmasked", unmasked, is_masked },
	{ "alone", alone, is_no_epoll },             { "in-vain", in_vain, NULL },
	{ "unseen", left_over, is_epoll },
};

static const struct scenario *chosen;

static void *run(void *given)
{
	struct probe *p = given;
	p->thread = pthread_self();
	p->watched = PAIRS;
	open_pairs(p);
	p->right = chosen->run(p);
	return NULL;
}

int main(int argc, char **argv)
{
	for (size_t i = 0; i < sizeof scenarios / sizeof *scenarios; i++)
		if (argc == 2 && strcmp(argv[1], scenarios[i].name) == 0)
			chosen = &scenarios[i];
	if (!chosen)
		return 2;
	struct sigaction action = { .sa_handler = handle, .sa_flags = SA_RESTART };
	sigaction(SIGUSR1, &action, NULL);
	int right = 0, all = 0;
	for (int kind = 0; kind < KINDS; kind++) {
		struct probe p = { .kind = kind, .scenario = chosen->name };
		pthread_t thread;
		if (chosen->concerns && !chosen->concerns(kind))
			continue;
		pthread_create(&thread, NULL, run, &p);
		pthread_join(thread, NULL);
		right += p.right;
		all++;
	}
	printf("%d of %d\n", right, all);
	return right != all;
}
