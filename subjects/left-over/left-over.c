/* SPDX-License-Identifier: MIT OR Apache-2.0
 *
 * A server of --sockets sockets that --take datagrams a wake of each (0: all), found by poll, select, epoll or their
 * kin: datagrams not taken are left over for the next call. Each round another thread rings a bell twice, which the
 * server has to wait for; then each socket gets --batch datagrams at once. */
#include "subject.h"
#include <poll.h>
#include <stdatomic.h>
#include <sys/epoll.h>
#include <sys/select.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#define MOST_SOCKETS 500

static uint64_t rounds = 20, batch = 5, sockets = 1, take = 1, silent = 0, family = 0;
static int inner[MOST_SOCKETS + 1], outer[MOST_SOCKETS + 1]; /* the first is the bell */
static struct pollfd polled[2 * MOST_SOCKETS + 1];
static struct epoll_event found[MOST_SOCKETS + 1];
static int nobody[MOST_SOCKETS][2], set;
static uint8_t ready[MOST_SOCKETS + 1];
static atomic_int waits_for_bell;

/* Finds which sockets are ready; waits until one is. The silent descriptors of a poll stand before the others. */
static uint64_t find_ready(void) {
    memset(ready, 0, sizeof(ready));
    uint64_t open = sockets + 1, all = silent + open;
    struct timespec *forever = NULL;
    fd_set reading;
    long n = 0;
    if (family == 2 || family == 3) {
        FD_ZERO(&reading);
        for (uint64_t i = 0; i < open; i++)
            FD_SET(inner[i], &reading);
    }
    switch (family) {
    case 0:
        n = syscall(SYS_poll, polled, all, -1);
        break;
    case 1:
        n = syscall(SYS_ppoll, polled, all, forever, NULL, 8);
        break;
    case 2:
        n = syscall(SYS_select, FD_SETSIZE, &reading, NULL, NULL, forever);
        break;
    case 3:
        n = syscall(SYS_pselect6, FD_SETSIZE, &reading, NULL, NULL, forever, NULL);
        break;
    case 4:
        n = syscall(SYS_epoll_wait, set, found, open, -1);
        break;
    case 5:
        n = syscall(SYS_epoll_pwait, set, found, open, -1, NULL, 8);
        break;
    default:
        n = syscall(SYS_epoll_pwait2, set, found, open, forever, NULL, 8);
    }
    for (uint64_t i = 0; i < open; i++) {
        ready[i] |= family < 2 && polled[silent + i].revents;
        ready[i] |= (family == 2 || family == 3) && FD_ISSET(inner[i], &reading);
    }
    for (long i = 0; family > 3 && i < n; i++)
        ready[found[i].data.u64 >> 40] = 1;
    return n < 0 ? 0 : (uint64_t)n;
}

/* Rings when the server has gone to sleep in its call. */
static void *ring(void *server) {
    char path[64], state = 0;
    snprintf(path, sizeof(path), "/proc/self/task/%d/stat", *(int *)server);
    for (uint64_t i = 0; i < 2 * rounds; i++) {
        while (!atomic_exchange(&waits_for_bell, 0))
            usleep(50);
        do {
            FILE *stat = fopen(path, "r");
            if (!stat || fscanf(stat, "%*d %*s %c", &state) != 1)
                subject_fail("left-over", "needs /proc");
            fclose(stat);
        } while (state != 'S');
        if (write(outer[0], "x", 1) != 1)
            subject_fail("left-over", "a bell that does not ring");
    }
    return NULL;
}

static void open_all(const char *program) {
    set = epoll_create1(0);
    for (uint64_t i = 0; i < silent; i++) {
        if (pipe(nobody[i]) != 0)
            subject_fail(program, "too few descriptors");
        polled[i] = (struct pollfd){nobody[i][0], POLLIN, 0};
    }
    for (uint64_t i = 0; i <= sockets; i++) {
        int pair[2];
        struct epoll_event event = {EPOLLIN, {.u64 = i << 40}};
        if (socketpair(AF_UNIX, SOCK_DGRAM, 0, pair) != 0)
            subject_fail(program, "too few descriptors");
        inner[i] = pair[0];
        outer[i] = pair[1];
        polled[silent + i] = (struct pollfd){inner[i], POLLIN, 0};
        if (epoll_ctl(set, EPOLL_CTL_ADD, inner[i], &event) != 0)
            subject_fail(program, "too few descriptors");
    }
}

int main(int argc, char **argv) {
    const struct subject_option options[] = {
        {"rounds", "rounds", &rounds, 0},
        {"batch", "datagrams a round and socket, at most 8", &batch, 0},
        {"sockets", "sockets", &sockets, 0},
        {"take", "datagrams taken a wake and socket; 0: all", &take, 0},
        {"silent", "silent descriptors in each poll", &silent, 0},
        {"family", "poll, ppoll, select, pselect6, epoll_wait, epoll_pwait, epoll_pwait2, from 0 on", &family, 0},
        {0},
    };
    subject_options(argc, argv, "Leaves over what it does not take.", options);
    if (sockets > MOST_SOCKETS || silent > MOST_SOCKETS || batch > 8 || batch == 0 || family > 6)
        subject_fail(argv[0], "an option's number is too large");
    open_all(argv[0]);
    pthread_t ringer;
    int server = (int)syscall(SYS_gettid);
    if (pthread_create(&ringer, NULL, ring, &server) != 0)
        subject_fail(argv[0], "no thread");
    uint64_t calls = 0, events = 0, taken = 0;
    char datagram;
    for (uint64_t round = 0; round < rounds; round++) {
        for (int bell = 0; bell < 2; bell++, calls++) {
            atomic_store(&waits_for_bell, 1);
            events += find_ready();
            taken += recv(inner[0], &datagram, 1, 0) == 1;
        }
        for (uint64_t i = 1; i <= sockets; i++)
            for (uint64_t n = 0; n < batch; n++)
                if (write(outer[i], "x", 1) != 1)
                    subject_fail(argv[0], "a socket that takes nothing");
        for (uint64_t left = batch * sockets; left > 0; calls++) {
            events += find_ready();
            for (uint64_t i = 1; i <= sockets; i++)
                for (uint64_t n = 0; ready[i] && (take == 0 || n < take); n++) {
                    if (recv(inner[i], &datagram, 1, MSG_DONTWAIT) != 1)
                        break;
                    left--;
                    taken++;
                }
        }
    }
    pthread_join(ringer, NULL);
    printf("left-over: calls=%llu events=%llu taken=%llu\n", (unsigned long long)calls, (unsigned long long)events,
           (unsigned long long)taken);
    return 0;
}
