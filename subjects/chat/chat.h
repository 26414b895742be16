/* Shared by the two sides of the chat. */
#ifndef CHAT_H
#define CHAT_H

#include <stdint.h>
#include <stddef.h>

struct shape {
	unsigned rooms, users, messages; /* users a room, messages a user */
	size_t size;                     /* bytes of a message */
	uint16_t port;                   /* on the loopback interface, host order */
};

/* The beginning of each message; the rest is filled so that damage shows. */
struct header {
	uint32_t room, user, number;
};

/* A client's first message gives its user; the server's first means that all have come. */
#define HELLO UINT32_MAX

/* Whole messages over a stream. Return 0 at the end of the stream; end the process on error. */
int receive_message(int socket, void *message, size_t size);
void send_message(int socket, const void *message, size_t size);

void fill(void *message, size_t size, struct header header);
int is_whole(const void *message, size_t size);

/* Starts a thread with a modest stack, or ends the process. */
void start_thread(void *(*routine)(void *), void *argument, void *pthread);

/* One line to standard error; ends the process with status 1. */
__attribute__((noreturn, format(printf, 1, 2))) void fail(const char *format, ...);

/* Serves until every client has gone. */
void serve(const struct shape *shape, int listener);
/* Plays every client; returns the seconds from the first message to the last. */
double play(const struct shape *shape);

#endif
