/* A TCP connection over loopback: round trips of small messages between marks 1 and 2, a bulk send between marks 2 and 3.
 * Usage: loopback [ROUND_TRIPS [KIB]] */
#include <arpa/inet.h>
#include <netinet/tcp.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "nearmiss.h"

enum { MESSAGE = 128, PIECE = 16 << 10, WARM_UP = 50 };

static long rounds, pieces;

static void fail(const char *what)
{
    perror(what);
    exit(1);
}

static void receive(int socket_, char *into, size_t bytes)
{
    for (size_t have = 0; have < bytes;) {
        ssize_t got = recv(socket_, into + have, bytes - have, 0);
        if (got <= 0)
            fail("recv");
        have += (size_t)got;
    }
}

static void deliver(int socket_, const char *from, size_t bytes)
{
    for (size_t done = 0; done < bytes;) {
        ssize_t sent = send(socket_, from + done, bytes - done, 0);
        if (sent <= 0)
            fail("send");
        done += (size_t)sent;
    }
}

static void *serve(void *argument)
{
    int listening = *(int *)argument;
    int socket_ = accept(listening, NULL, NULL);
    if (socket_ < 0)
        fail("accept");
    static char piece[PIECE];
    for (long i = 0; i < WARM_UP + rounds; i++) {
        receive(socket_, piece, MESSAGE);
        deliver(socket_, piece, MESSAGE);
    }
    for (long i = 0; i < pieces; i++)
        receive(socket_, piece, PIECE);
    deliver(socket_, piece, 1);
    close(socket_);
    return NULL;
}

static void round_trips(int socket_, long count)
{
    char message[MESSAGE] = {1};
    for (long i = 0; i < count; i++) {
        deliver(socket_, message, sizeof message);
        receive(socket_, message, sizeof message);
    }
}

static int connected(int listening)
{
    struct sockaddr_in address;
    socklen_t length = sizeof address;
    int socket_ = socket(AF_INET, SOCK_STREAM, 0), on = 1;
    if (getsockname(listening, (struct sockaddr *)&address, &length) || socket_ < 0 ||
        connect(socket_, (struct sockaddr *)&address, length) ||
        setsockopt(socket_, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on))
        fail("connect");
    return socket_;
}

int main(int count, char **words)
{
    rounds = count > 1 ? atol(words[1]) : 200;
    pieces = (count > 2 ? atol(words[2]) : 1024) * 1024 / PIECE;
    struct sockaddr_in any = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    int listening = socket(AF_INET, SOCK_STREAM, 0);
    if (listening < 0 || bind(listening, (struct sockaddr *)&any, sizeof any) || listen(listening, 1))
        fail("listen");
    pthread_t server;
    if (pthread_create(&server, NULL, serve, &listening))
        fail("pthread_create");
    int socket_ = connected(listening);
    round_trips(socket_, WARM_UP);
    NEARMISS_MARK(1);
    round_trips(socket_, rounds);
    NEARMISS_MARK(2);
    static char piece[PIECE];
    for (long i = 0; i < pieces; i++)
        deliver(socket_, piece, sizeof piece);
    receive(socket_, piece, 1);
    NEARMISS_MARK(3);
    pthread_join(server, NULL);
    close(socket_);
    return 0;
}
