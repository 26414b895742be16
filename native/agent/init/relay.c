/* SPDX-License-Identifier: MIT OR Apache-2.0
 *
 * The command gets what it would have had outside: pipes where there were pipes or files, a
 * terminal where there was one. The agent carries the bytes between those and the virtio ports,
 * which are poor standard descriptors (a port can be opened only once: /dev/stderr would fail).
 */
#define _GNU_SOURCE
#include "agent.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <unistd.h>

#define BLOCK 65536

struct flow {
    int from, to; /* -1: closed */
    bool from_port;
    bool ended; /* nothing more comes from the command */
    size_t begin, end;
    uint64_t moved;
    char block[BLOCK];
};

enum { FLOW_INPUT, FLOW_TERMINAL, FLOW_OUTPUT, FLOW_ERROR, FLOWS };
static struct flow flows[FLOWS];
static int terminal = -1, terminal_slave = -1;
static int child_side[3] = {-1, -1, -1};
static pid_t child_group;

static int terminal_open(const struct config *config)
{
    char path[32];
    int number, unlock = 0;
    terminal = open("/dev/pts/ptmx", O_RDWR | O_NOCTTY | O_CLOEXEC | O_NONBLOCK);
    if (terminal < 0 || ioctl(terminal, TIOCSPTLCK, &unlock) || ioctl(terminal, TIOCGPTN, &number))
        die("cannot make", "a terminal");
    snprintf(path, sizeof(path), "/dev/pts/%d", number);
    terminal_slave = open(path, O_RDWR | O_NOCTTY | O_CLOEXEC);
    if (terminal_slave < 0)
        die("cannot open", path);
    if (fchown(terminal_slave, config->uid, (gid_t)-1))
        die("cannot own", path);
    if (config->has_termios)
        tcsetattr(terminal_slave, TCSANOW, &config->termios);
    struct winsize size = {config->rows, config->columns, config->x_pixels, config->y_pixels};
    ioctl(terminal, TIOCSWINSZ, &size);
    return terminal_slave;
}

static void make_pipe(int ends[2])
{
    if (pipe2(ends, O_CLOEXEC))
        die("cannot make", "a pipe");
}

void relay_prepare(const struct config *config)
{
    bool has_terminal = false;
    for (int i = 0; i < FLOWS; i++)
        flows[i].from = flows[i].to = -1;
    for (int i = 0; i < 3; i++)
        has_terminal |= config->streams[i].kind == STREAM_TTY;
    if (has_terminal) {
        int port = port_open(PORT_INPUT);
        terminal_open(config);
        flows[FLOW_TERMINAL].from = terminal;
        flows[FLOW_TERMINAL].to = port;
        if (config->streams[0].kind == STREAM_TTY) {
            flows[FLOW_INPUT].from = port;
            flows[FLOW_INPUT].from_port = true;
            flows[FLOW_INPUT].to = terminal;
        }
    }
    for (int i = 0; i < 3; i++) {
        const struct stream *stream = &config->streams[i];
        int ends[2];
        switch (stream->kind) {
        case STREAM_TTY:
            child_side[i] = terminal_slave;
            break;
        case STREAM_NULL:
            child_side[i] = open("/dev/null", O_RDWR | O_CLOEXEC);
            break;
        case STREAM_FILE:
            /* A file to write to is the guest's own. */
            child_side[i] = open(stream->path, (i == 0 ? O_RDONLY : O_RDWR | O_CREAT | O_TRUNC) | O_CLOEXEC, 0666);
            if (child_side[i] < 0)
                die(i == 0 ? "cannot open the standard input," : "cannot open an output,", stream->path);
            lseek(child_side[i], stream->offset, SEEK_SET);
            break;
        case STREAM_PORT:
            make_pipe(ends);
            struct flow *flow = &flows[i == 0 ? FLOW_INPUT : i == 1 ? FLOW_OUTPUT : FLOW_ERROR];
            int ours = ends[i == 0 ? 1 : 0];
            fcntl(ours, F_SETFL, O_NONBLOCK);
            child_side[i] = ends[i == 0 ? 0 : 1];
            if (i == 0) {
                flow->from = port_open(PORT_INPUT);
                flow->from_port = true;
                flow->to = ours;
            } else {
                flow->from = ours;
                flow->to = port_open(i == 1 ? PORT_OUTPUT : PORT_ERROR);
            }
            break;
        case STREAM_SAME:
            child_side[i] = child_side[1];
            break;
        case STREAM_CLOSED:
            break;
        }
    }
}

void relay_enter(const struct config *config)
{
    int high[3];
    setsid();
    if (terminal_slave >= 0)
        ioctl(terminal_slave, TIOCSCTTY, 0);
    /* First out of the way of each other, then into place. */
    for (int i = 0; i < 3; i++)
        high[i] = child_side[i] >= 0 ? fcntl(child_side[i], F_DUPFD_CLOEXEC, 10) : -1;
    for (int i = 0; i < 3; i++) {
        if (config->streams[i].kind == STREAM_CLOSED || high[i] < 0)
            close(i);
        else
            dup2(high[i], i);
    }
}

void relay_started(void)
{
    for (int i = 0; i < 3; i++) {
        if (child_side[i] >= 0 && child_side[i] != terminal_slave)
            close(child_side[i]);
        if (i == 1 && child_side[2] == child_side[1])
            break;
    }
    if (terminal_slave >= 0)
        close(terminal_slave);
}

static void close_end(int *descriptor)
{
    if (*descriptor >= 0 && *descriptor != terminal)
        close(*descriptor);
    *descriptor = -1;
}

static void flow_stop(struct flow *flow)
{
    flow->begin = flow->end = 0;
    /* The input port carries the terminal's output too. */
    bool shared = flow == &flows[FLOW_INPUT] && flows[FLOW_TERMINAL].to >= 0;
    if (shared)
        flow->from = -1;
    close_end(&flow->from);
    close_end(&flow->to);
}

static void flow_write(struct flow *flow)
{
    ssize_t n = write(flow->to, flow->block + flow->begin, flow->end - flow->begin);
    if (n > 0) {
        flow->begin += (size_t)n;
        flow->moved += (size_t)n;
        if (flow->begin == flow->end)
            flow->begin = flow->end = 0;
    } else if (n < 0 && errno != EAGAIN && errno != EINTR) {
        flow_stop(flow); /* no reader: the writer must get its SIGPIPE */
    }
}

/* Whether there may be more to read. */
static bool flow_read(struct flow *flow)
{
    ssize_t n = read(flow->from, flow->block, BLOCK);
    if (n > 0) {
        flow->end = (size_t)n;
        flow_write(flow);
        return true;
    }
    if (n < 0 && (errno == EAGAIN || errno == EINTR))
        return false;
    /* A terminal without an open slave gives EIO; it may be opened again. */
    if (n < 0 && errno == EIO && flow->from == terminal)
        return false;
    if (flow->from_port)
        flow_stop(flow); /* the command waits for the end of its input */
    else
        flow->ended = true; /* closed behind the window */
    return false;
}

void relay_resize(const char *order)
{
    struct winsize size = {0};
    if (terminal >= 0 && sscanf(order, "window %hu %hu %hu %hu", &size.ws_row, &size.ws_col,
                                &size.ws_xpixel, &size.ws_ypixel) == 4)
        ioctl(terminal, TIOCSWINSZ, &size);
}

static void obey(const char *order)
{
    int number;
    if (sscanf(order, "signal %d", &number) == 1) {
        if (child_group > 0)
            kill(-child_group, number);
    } else if (!strncmp(order, "window ", 7)) {
        relay_resize(order);
    } else if (!strcmp(order, "waits")) {
        waits_report();
    }
}

static bool reap(pid_t child, int *status)
{
    for (;;) {
        siginfo_t ended = {0};
        if (waitid(P_ALL, 0, &ended, WEXITED | WNOHANG) || !ended.si_pid)
            return false;
        if (ended.si_pid == child) {
            *status = ended.si_code == CLD_EXITED ? W_EXITCODE(ended.si_status, 0) : W_EXITCODE(0, ended.si_status);
            return true;
        }
    }
}

/* Calls of its own within the window are those that commands make seldom: ppoll, waitid, rt_sigtimedwait. Counts of system
 * calls have the command's part of each; so nothing is closed there, either. */
int relay_until_exit(pid_t child)
{
    enum { CONTROL = 2 * FLOWS, ENDED, ALL };
    struct pollfd waits[ALL];
    sigset_t ends;
    int status;
    sigemptyset(&ends);
    sigaddset(&ends, SIGCHLD);
    int ended = signalfd(-1, &ends, SFD_CLOEXEC | SFD_NONBLOCK);
    child_group = child;
    while (!reap(child, &status)) {
        for (int i = 0; i < FLOWS; i++) {
            struct flow *flow = &flows[i];
            bool full = flow->end > 0;
            waits[2 * i] = (struct pollfd){.fd = full || flow->ended ? -1 : flow->from, .events = POLLIN};
            /* Even with nothing to write, learn that the other side has gone. */
            waits[2 * i + 1] = (struct pollfd){.fd = flow->to == terminal && !full ? -1 : flow->to,
                                               .events = full ? POLLOUT : 0};
        }
        waits[CONTROL] = (struct pollfd){.fd = control_descriptor(), .events = POLLIN};
        waits[ENDED] = (struct pollfd){.fd = ended, .events = POLLIN};
        ppoll(waits, ALL, NULL, NULL);
        for (int i = 0; i < FLOWS; i++) {
            struct flow *flow = &flows[i];
            if (waits[2 * i + 1].revents & (POLLHUP | POLLERR) && flow->to >= 0)
                flow_stop(flow);
            else if (waits[2 * i + 1].revents & POLLOUT)
                flow_write(flow);
            if (waits[2 * i].revents && flow->from >= 0 && flow->end == 0)
                flow_read(flow);
        }
        if (waits[CONTROL].revents & POLLIN)
            for (const char *order; (order = control_next());)
                obey(order);
        while (waits[ENDED].revents && sigtimedwait(&ends, NULL, &(struct timespec){0}) > 0)
            ;
    }
    return status;
}

/* Relays what the command wrote before it ended, and no more: other holders of its pipes are not waited for. */
void relay_drain(struct relay_totals *totals)
{
    for (int i = FLOW_TERMINAL; i < FLOWS; i++) {
        struct flow *flow = &flows[i];
        bool more = true;
        while (flow->from >= 0 && flow->to >= 0 && (more || flow->end)) {
            if (flow->end) {
                struct pollfd wait = {.fd = flow->to, .events = POLLOUT};
                poll(&wait, 1, -1);
                if (wait.revents & (POLLHUP | POLLERR))
                    flow_stop(flow);
                else
                    flow_write(flow);
            } else {
                more = flow_read(flow);
            }
        }
        if (flow->ended)
            flow_stop(flow);
    }
    totals->terminal = flows[FLOW_TERMINAL].moved;
    totals->output = flows[FLOW_OUTPUT].moved;
    totals->error = flows[FLOW_ERROR].moved;
}
