/* Whole messages over a stream, and what both sides do when something fails. */
#define _GNU_SOURCE
#include "chat.h"
#include <errno.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define STACK_BYTES (256 * 1024)

int receive_message(int socket, void *message, size_t size)
{
	for (size_t at = 0; at < size;) {
		ssize_t n = recv(socket, (char *)message + at, size - at, 0);
		if (n == 0 && at == 0)
			return 0;
		if (n > 0)
			at += (size_t)n;
		else if (n == 0 || errno != EINTR)
			fail("a message broke off: %s", n ? strerror(errno) : "end of stream");
	}
	return 1;
}

void send_message(int socket, const void *message, size_t size)
{
	for (size_t at = 0; at < size;) {
		ssize_t n = send(socket, (const char *)message + at, size - at, MSG_NOSIGNAL);
		if (n >= 0)
			at += (size_t)n;
		else if (errno != EINTR)
			fail("cannot send: %s", strerror(errno));
	}
}

static unsigned char filling(struct header header)
{
	return (unsigned char)(header.room * 31 + header.user * 7 + header.number);
}

void fill(void *message, size_t size, struct header header)
{
	memcpy(message, &header, sizeof header);
	memset((char *)message + sizeof header, filling(header), size - sizeof header);
}

int is_whole(const void *message, size_t size)
{
	const unsigned char *bytes = message;
	struct header header;
	memcpy(&header, message, sizeof header);
	for (size_t i = sizeof header; i < size; i++)
		if (bytes[i] != filling(header))
			return 0;
	return 1;
}

void start_thread(void *(*routine)(void *), void *argument, void *pthread)
{
	pthread_attr_t attributes;
	pthread_attr_init(&attributes);
	pthread_attr_setstacksize(&attributes, STACK_BYTES);
	int error = pthread_create(pthread, &attributes, routine, argument);
	if (error)
		fail("cannot start a thread: %s; lower --rooms or --users", strerror(error));
	pthread_attr_destroy(&attributes);
}

void fail(const char *format, ...)
{
	va_list arguments;
	char text[256];
	va_start(arguments, format);
	vsnprintf(text, sizeof text, format, arguments);
	va_end(arguments);
	fprintf(stderr, "chat: %s\n", text);
	_exit(1);
}
