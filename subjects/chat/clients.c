/* The clients: for each user one thread that sends and one that receives. */
#define _GNU_SOURCE
#include "chat.h"
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

struct user {
	const struct shape *shape;
	uint32_t room, number;
	int socket;
	pthread_t sender, receiver;
};

/* Gate at which all senders wait until everybody has come. */
static pthread_mutex_t gate = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t opened = PTHREAD_COND_INITIALIZER;
static unsigned arrived;
static int is_open;

static void *send_all(void *argument)
{
	struct user *user = argument;
	char *message = malloc(user->shape->size);
	if (!message)
		fail("no memory");
	pthread_mutex_lock(&gate);
	while (!is_open)
		pthread_cond_wait(&opened, &gate);
	pthread_mutex_unlock(&gate);
	for (uint32_t i = 0; i < user->shape->messages; i++) {
		fill(message, user->shape->size, (struct header){ user->room, user->number, i });
		send_message(user->socket, message, user->shape->size);
	}
	shutdown(user->socket, SHUT_WR);
	free(message);
	return NULL;
}

/* Everything that anyone in the room sends comes once, whole, in its sender's order. */
static void *receive_all(void *argument)
{
	struct user *user = argument;
	const struct shape *shape = user->shape;
	char *message = malloc(shape->size);
	uint32_t *next = calloc(shape->users, sizeof *next);
	struct header header;
	if (!message || !next)
		fail("no memory");
	if (!receive_message(user->socket, message, shape->size))
		fail("the server has gone");
	memcpy(&header, message, sizeof header);
	if (header.number != HELLO)
		fail("the server did not begin with a hello");
	pthread_mutex_lock(&gate);
	arrived++;
	pthread_cond_broadcast(&opened);
	pthread_mutex_unlock(&gate);
	for (uint64_t i = 0; i < (uint64_t)shape->users * shape->messages; i++) {
		if (!receive_message(user->socket, message, shape->size))
			fail("the server went too early");
		memcpy(&header, message, sizeof header);
		if (header.room != user->room || header.user >= shape->users ||
		    header.number != next[header.user]++ || !is_whole(message, shape->size))
			fail("room %u, user %u: a wrong message", user->room, user->number);
	}
	free(next);
	free(message);
	return NULL;
}

static void connect_user(struct user *user)
{
	struct sockaddr_in address = { .sin_family = AF_INET,
				       .sin_port = htons(user->shape->port),
				       .sin_addr = { htonl(INADDR_LOOPBACK) } };
	int one = 1;
	user->socket = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (user->socket < 0 || connect(user->socket, (struct sockaddr *)&address, sizeof address) < 0)
		fail("cannot connect: %s", strerror(errno));
	setsockopt(user->socket, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
	char *message = malloc(user->shape->size);
	if (!message)
		fail("no memory");
	fill(message, user->shape->size, (struct header){ user->room, user->number, HELLO });
	send_message(user->socket, message, user->shape->size);
	free(message);
}

static double now(void)
{
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

double play(const struct shape *shape)
{
	unsigned all = shape->rooms * shape->users;
	struct user *users = calloc(all, sizeof *users);
	if (!users)
		fail("no memory");
	for (unsigned i = 0; i < all; i++) {
		users[i] = (struct user){ .shape = shape, .room = i / shape->users, .number = i % shape->users };
		connect_user(&users[i]);
	}
	for (unsigned i = 0; i < all; i++) {
		start_thread(send_all, &users[i], &users[i].sender);
		start_thread(receive_all, &users[i], &users[i].receiver);
	}
	pthread_mutex_lock(&gate);
	while (arrived < all)
		pthread_cond_wait(&opened, &gate);
	double start = now();
	is_open = 1;
	pthread_cond_broadcast(&opened);
	pthread_mutex_unlock(&gate);
	for (unsigned i = 0; i < all; i++) {
		pthread_join(users[i].sender, NULL);
		pthread_join(users[i].receiver, NULL);
	}
	double seconds = now() - start;
	for (unsigned i = 0; i < all; i++)
		close(users[i].socket);
	free(users);
	return seconds;
}
