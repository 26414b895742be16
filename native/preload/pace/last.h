/* Descriptors that a thread's last call returned, and whether some of it was left over: many programs take one datagram
 * or one connection a call, and count on the next call to bring the rest at once. */
#ifndef LAST_H
#define LAST_H

#include <poll.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/epoll.h>
#include <sys/select.h>

/* Descriptors that are looked at again; a call that returned more has gathered enough not to be held up. */
#define MOST_LAST 64

struct last {
	unsigned count;
	int set; /* the epoll set that returned them, or -1 */
	union {
		int descriptors[MOST_LAST];
		uint64_t data[MOST_LAST]; /* as epoll returned it */
	};
};

enum left_over { TAKEN, LEFT, UNKNOWN };

void note_polled(struct last *last, const struct pollfd *polled, size_t count, int events);
void note_selected(struct last *last, const fd_set *readable, int count, int events);
void note_epolled(struct last *last, int set, const struct epoll_event *returned, int events);

/* epoll returns what was registered with a descriptor, not the descriptor: every registration is learnt. */
void learn(int set, int operation, int descriptor, const struct epoll_event *event);

/* Polls the last return's descriptors, without waiting. */
enum left_over poll_left_over(const struct last *last);

#endif
