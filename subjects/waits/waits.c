/* SPDX-License-Identifier: MIT OR Apache-2.0
 *
 * A server that waits for datagrams on --sockets sockets, and a thread of its own that sends --rate of them a second, one
 * socket after the other. How it waits decides whether fewer waits would help: by poll, select or epoll, for one event a
 * call or (--rest) for what gathers while it rests, with timeout 0 (--spin), and taking all or --take of what is there. */
#include "subject.h"
#include <fcntl.h>
#include <poll.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/select.h>
#include <sys/socket.h>
#include <unistd.h>

#define MOST_SOCKETS 9000

static uint64_t sockets = 50, rate = 10000, events = 20000, burst = 1, take = 0, rest_us = 0, spin = 0, family = 0;
static int inner[MOST_SOCKETS], outer[MOST_SOCKETS];
static struct pollfd polled[MOST_SOCKETS];
static struct epoll_event found[64];
static int set;

static void until(double due_ns) {
    struct timespec due = {(time_t)(due_ns / 1e9), (long)(due_ns - (double)(time_t)(due_ns / 1e9) * 1e9)};
    clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &due, NULL);
}

static void *send_all(void *start) {
    for (uint64_t i = 0; i < events; i++) {
        if (i % burst == 0)
            until(*(double *)start + (double)i * 1e9 / (double)rate);
        if (write(outer[i / burst % sockets], "x", 1) != 1)
            subject_fail("waits", "a socket that takes nothing");
    }
    return NULL;
}

static void open_all(const char *program) {
    struct rlimit descriptors;
    getrlimit(RLIMIT_NOFILE, &descriptors);
    descriptors.rlim_cur = descriptors.rlim_max;
    setrlimit(RLIMIT_NOFILE, &descriptors);
    set = epoll_create1(0);
    for (uint64_t i = 0; i < sockets; i++) {
        int pair[2];
        if (socketpair(AF_UNIX, SOCK_DGRAM, 0, pair) != 0)
            subject_fail(program, "too few descriptors");
        inner[i] = pair[0];
        outer[i] = pair[1];
        fcntl(inner[i], F_SETFL, O_NONBLOCK);
        polled[i] = (struct pollfd){inner[i], POLLIN, 0};
        struct epoll_event event = {EPOLLIN, {.fd = inner[i]}};
        if (epoll_ctl(set, EPOLL_CTL_ADD, inner[i], &event) != 0)
            subject_fail(program, "too few descriptors");
    }
}

static uint64_t take_from(int socket) {
    char datagram;
    uint64_t taken = 0;
    while ((take == 0 || taken < take) && recv(socket, &datagram, 1, 0) == 1)
        taken++;
    return taken;
}

/* One wait, and what it brings. */
static uint64_t serve(void) {
    uint64_t taken = 0;
    if (family == 0) {
        int left = poll(polled, sockets, spin ? 0 : -1);
        for (uint64_t i = 0; left > 0 && i < sockets; i++)
            if (polled[i].revents) {
                left--;
                taken += take_from(inner[i]);
            }
    } else if (family == 1) {
        fd_set reading;
        struct timeval none = {0};
        FD_ZERO(&reading);
        for (uint64_t i = 0; i < sockets; i++)
            FD_SET(inner[i], &reading);
        if (select(inner[sockets - 1] + 1, &reading, NULL, NULL, spin ? &none : NULL) > 0)
            for (uint64_t i = 0; i < sockets; i++)
                if (FD_ISSET(inner[i], &reading))
                    taken += take_from(inner[i]);
    } else {
        int ready = epoll_wait(set, found, 64, spin ? 0 : -1);
        for (int i = 0; i < ready; i++)
            taken += take_from(found[i].data.fd);
    }
    return taken;
}

int main(int argc, char **argv) {
    const struct subject_option options[] = {
        {"sockets", "sockets", &sockets, 0},
        {"rate", "datagrams a second", &rate, 0},
        {"events", "datagrams in all", &events, 0},
        {"burst", "datagrams at once, on one socket, at most 8", &burst, 0},
        {"take", "datagrams taken of a socket and wake; 0: all", &take, 0},
        {"rest", "microseconds that the server rests between two waits", &rest_us, 0},
        {"spin", "waits have timeout 0", &spin, 1},
        {"family", "poll, select, epoll_wait, from 0 on", &family, 0},
        {0},
    };
    subject_options(argc, argv, "Waits for events in one of several ways.", options);
    if (sockets == 0 || sockets > MOST_SOCKETS || (family == 1 && sockets > 400) || family > 2 || burst == 0 || burst > 8 || rate == 0)
        subject_fail(argv[0], "an option's number is too large, or 0");
    open_all(argv[0]);
    double start = subject_now_ns() + 5e7;
    pthread_t sender;
    if (pthread_create(&sender, NULL, send_all, &start) != 0)
        subject_fail(argv[0], "no thread");
    uint64_t calls = 0, taken = 0;
    for (; taken < events; calls++) {
        taken += serve();
        if (rest_us > 0)
            until(subject_now_ns() + (double)rest_us * 1e3);
    }
    pthread_join(sender, NULL);
    printf("waits: taken=%llu calls=%llu ns/event=%.1f\n", (unsigned long long)taken, (unsigned long long)calls,
           (subject_now_ns() - start) / (double)events);
    return 0;
}
