/* The functions behind those that this library wraps. */
#ifndef REAL_H
#define REAL_H

#define _GNU_SOURCE
#include <poll.h>
#include <signal.h>
#include <stdatomic.h>
#include <stddef.h>
#include <sys/epoll.h>
#include <sys/select.h>
#include <time.h>

struct real {
	atomic_int found;
	int (*poll)(struct pollfd *, nfds_t, int);
	int (*ppoll)(struct pollfd *, nfds_t, const struct timespec *, const sigset_t *);
	int (*poll_chk)(struct pollfd *, nfds_t, int, size_t);
	int (*ppoll_chk)(struct pollfd *, nfds_t, const struct timespec *, const sigset_t *, size_t);
	int (*select)(int, fd_set *, fd_set *, fd_set *, struct timeval *);
	int (*pselect)(int, fd_set *, fd_set *, fd_set *, const struct timespec *, const sigset_t *);
	int (*epoll_wait)(int, struct epoll_event *, int, int);
	int (*epoll_pwait)(int, struct epoll_event *, int, int, const sigset_t *);
	/* NULL in C libraries before 2.35. */
	int (*epoll_pwait2)(int, struct epoll_event *, int, const struct timespec *, const sigset_t *);
	int (*epoll_ctl)(int, int, int, struct epoll_event *);
	long (*syscall)(long, ...);
};

extern struct real real __attribute__((visibility("hidden")));

/* Threads that search at the same time find the same. */
void find_real(void);

/* Constructors of other libraries call us before our own has run. */
static inline void need_real(void)
{
	if (__builtin_expect(!atomic_load_explicit(&real.found, memory_order_acquire), 0))
		find_real();
}

#endif
