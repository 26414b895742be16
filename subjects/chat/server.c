/* The server: for each user one thread that receives and passes on to the whole room, and one
 * that sends what has come for the user. */
#define _GNU_SOURCE
#include "chat.h"
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define QUEUE_MESSAGES 64

struct member {
	int socket;
	struct room *room;
	pthread_t receiver, sender;
	pthread_mutex_t lock;
	pthread_cond_t changed;
	unsigned head, count;    /* of the queue */
	char *queue;             /* QUEUE_MESSAGES messages */
};

struct room {
	const struct shape *shape;
	struct member *members;
	pthread_mutex_t lock;
	unsigned talking;        /* members that may still send */
};

static void enqueue(struct member *member, const void *message, size_t size)
{
	pthread_mutex_lock(&member->lock);
	while (member->count == QUEUE_MESSAGES)
		pthread_cond_wait(&member->changed, &member->lock);
	unsigned tail = (member->head + member->count++) % QUEUE_MESSAGES;
	memcpy(member->queue + tail * size, message, size);
	pthread_cond_broadcast(&member->changed);
	pthread_mutex_unlock(&member->lock);
}

static void *receive_from(void *argument)
{
	struct member *member = argument;
	const struct shape *shape = member->room->shape;
	char *message = malloc(shape->size);
	if (!message)
		fail("no memory");
	while (receive_message(member->socket, message, shape->size))
		for (unsigned i = 0; i < shape->users; i++)
			enqueue(&member->room->members[i], message, shape->size);
	free(message);
	return NULL;
}

static void *send_to(void *argument)
{
	struct member *member = argument;
	const struct shape *shape = member->room->shape;
	char *message = malloc(shape->size);
	if (!message)
		fail("no memory");
	uint64_t due = (uint64_t)shape->users * shape->messages + 1; /* and the hello */
	for (; due; due--) {
		pthread_mutex_lock(&member->lock);
		while (member->count == 0)
			pthread_cond_wait(&member->changed, &member->lock);
		memcpy(message, member->queue + member->head * shape->size, shape->size);
		member->head = (member->head + 1) % QUEUE_MESSAGES;
		member->count--;
		pthread_cond_broadcast(&member->changed);
		pthread_mutex_unlock(&member->lock);
		send_message(member->socket, message, shape->size);
	}
	free(message);
	return NULL;
}

/* Takes one client in; its hello names it. */
static void admit(const struct shape *shape, struct room *rooms, int listener, void *message)
{
	int one = 1, socket;
	do
		socket = accept4(listener, NULL, NULL, SOCK_CLOEXEC);
	while (socket < 0 && errno == EINTR);
	if (socket < 0)
		fail("cannot accept: %s", strerror(errno));
	setsockopt(socket, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
	struct header hello = { 0, 0, 0 };
	if (receive_message(socket, message, shape->size))
		memcpy(&hello, message, sizeof hello);
	if (hello.number != HELLO || hello.room >= shape->rooms || hello.user >= shape->users ||
	    rooms[hello.room].members[hello.user].socket >= 0)
		fail("a client without a proper hello");
	rooms[hello.room].members[hello.user].socket = socket;
}

void serve(const struct shape *shape, int listener)
{
	unsigned all = shape->rooms * shape->users;
	struct room *rooms = calloc(shape->rooms, sizeof *rooms);
	struct member *members = calloc(all, sizeof *members);
	char *message = malloc(shape->size);
	if (!rooms || !members || !message)
		fail("no memory");
	for (unsigned i = 0; i < shape->rooms; i++) {
		rooms[i].shape = shape;
		rooms[i].members = members + i * shape->users;
	}
	for (unsigned i = 0; i < all; i++) {
		members[i].socket = -1;
		members[i].room = &rooms[i / shape->users];
		members[i].queue = malloc(QUEUE_MESSAGES * shape->size);
		if (!members[i].queue)
			fail("no memory");
		pthread_mutex_init(&members[i].lock, NULL);
		pthread_cond_init(&members[i].changed, NULL);
	}
	for (unsigned i = 0; i < all; i++)
		admit(shape, rooms, listener, message);
	for (unsigned i = 0; i < all; i++) {
		start_thread(receive_from, &members[i], &members[i].receiver);
		start_thread(send_to, &members[i], &members[i].sender);
	}
	fill(message, shape->size, (struct header){ 0, 0, HELLO });
	for (unsigned i = 0; i < all; i++)
		enqueue(&members[i], message, shape->size);
	for (unsigned i = 0; i < all; i++) {
		pthread_join(members[i].receiver, NULL);
		pthread_join(members[i].sender, NULL);
		close(members[i].socket);
		free(members[i].queue);
	}
	free(message);
	free(members);
	free(rooms);
}
