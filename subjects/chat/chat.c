/* The Chat benchmark: users in rooms, each of whom sends messages that the server passes on
 * to everybody in the room, over TCP on the loopback interface; four threads a user, two on
 * either side. Every message is checked. Prints how many are delivered a second. */
#define _GNU_SOURCE
#include "chat.h"
#include <errno.h>
#include <netinet/in.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#define MOST_USERS 20000

static void usage(FILE *out)
{
	fputs("usage: chat [--rooms N] [--users N] [--messages N] [--size BYTES] [--limit SECONDS]\n"
	      "  --rooms     rooms (10)\n"
	      "  --users     users in each room (20)\n"
	      "  --messages  messages that each user sends (100)\n"
	      "  --size      bytes of a message (100)\n"
	      "  --limit     give up after so many seconds (300)\n",
	      out);
}

static unsigned number(const char *name, const char *text, unsigned least, unsigned most)
{
	char *end = NULL;
	errno = 0;
	unsigned long n = text ? strtoul(text, &end, 10) : 0;
	if (!text || errno || *end || end == text || *text == '-' || n < least || n > most) {
		fprintf(stderr, "chat: %s %s: give a number from %u to %u\n", name, text ? text : "(nothing)", least, most);
		exit(2);
	}
	return (unsigned)n;
}

static int listen_anywhere(struct shape *shape)
{
	struct sockaddr_in address = { .sin_family = AF_INET, .sin_addr = { htonl(INADDR_LOOPBACK) } };
	socklen_t length = sizeof address;
	int listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (listener < 0 || bind(listener, (struct sockaddr *)&address, sizeof address) < 0 ||
	    listen(listener, MOST_USERS) < 0 || getsockname(listener, (struct sockaddr *)&address, &length) < 0)
		fail("cannot listen on the loopback interface: %s", strerror(errno));
	shape->port = ntohs(address.sin_port);
	return listener;
}

/* One socket a user and side. */
static void allow_sockets(unsigned users)
{
	struct rlimit limit;
	getrlimit(RLIMIT_NOFILE, &limit);
	if (limit.rlim_cur < users + 64) {
		if (limit.rlim_max < users + 64)
			fail("%u users need %u open files, and the limit is %lu (ulimit -n)", users, users + 64,
			     (unsigned long)limit.rlim_max);
		limit.rlim_cur = users + 64;
		setrlimit(RLIMIT_NOFILE, &limit);
	}
}

static void out_of_time(int signal)
{
	static const char text[] = "chat: not done within --limit\n";
	(void)signal;
	if (write(2, text, sizeof text - 1) < 0)
		_exit(1);
	_exit(1);
}

int main(int argc, char **argv)
{
	struct shape shape = { .rooms = 10, .users = 20, .messages = 100, .size = 100 };
	unsigned limit = 300;
	for (int i = 1; i < argc; i++) {
		const char *name = argv[i];
		if (!strcmp(name, "--help")) {
			usage(stdout);
			return 0;
		}
		const char *value = argv[++i < argc ? i : argc];
		if (!strcmp(name, "--rooms"))
			shape.rooms = number(name, value, 1, MOST_USERS);
		else if (!strcmp(name, "--users"))
			shape.users = number(name, value, 1, MOST_USERS);
		else if (!strcmp(name, "--messages"))
			shape.messages = number(name, value, 1, 1000000);
		else if (!strcmp(name, "--size"))
			shape.size = number(name, value, sizeof(struct header), 65536);
		else if (!strcmp(name, "--limit"))
			limit = number(name, value, 1, 86400);
		else {
			usage(stderr);
			return 2;
		}
	}
	if (shape.rooms > MOST_USERS / shape.users) {
		fprintf(stderr, "chat: --rooms %u --users %u: at most %u users in all\n", shape.rooms, shape.users, MOST_USERS);
		return 2;
	}
	unsigned users = shape.rooms * shape.users;
	allow_sockets(users);
	int listener = listen_anywhere(&shape);
	signal(SIGALRM, out_of_time);
	pid_t parent = getpid(), server = fork();
	if (server < 0)
		fail("cannot fork: %s", strerror(errno));
	if (server == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		if (getppid() != parent)
			_exit(1);
		serve(&shape, listener);
		_exit(0);
	}
	close(listener);
	alarm(limit);
	double seconds = play(&shape);
	int status;
	if (waitpid(server, &status, 0) != server || !WIFEXITED(status) || WEXITSTATUS(status))
		fail("the server failed");
	double delivered = (double)users * shape.users * shape.messages;
	printf("rooms %u users %u messages %u size %zu threads %u\n", shape.rooms, shape.users, shape.messages, shape.size,
	       users * 4);
	printf("delivered %.0f\nseconds %.6f\nmessages_per_s %.1f\n", delivered, seconds, delivered / seconds);
	return 0;
}
