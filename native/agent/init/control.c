/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "agent.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

static int control = -1;
static char pending[8192];
static size_t pending_length, consumed;

void write_all(int descriptor, const void *data, size_t length)
{
    const char *from = data;
    while (length) {
        ssize_t n = write(descriptor, from, length);
        if (n > 0) {
            from += n;
            length -= (size_t)n;
        } else if (n < 0 && errno == EAGAIN) {
            struct pollfd wait = {.fd = descriptor, .events = POLLOUT};
            poll(&wait, 1, -1);
        } else if (n < 0 && errno == EINTR) {
            continue;
        } else {
            return;
        }
    }
}

bool write_file(const char *path, const char *text)
{
    int file = open(path, O_WRONLY | O_CLOEXEC);
    if (file < 0)
        return false;
    bool done = write(file, text, strlen(text)) == (ssize_t)strlen(text);
    close(file);
    return done;
}

/* The first part of a port's name is the number of its device among all virtio devices. */
static int port_try(int number)
{
    enum { DEVICES = 8 };
    char path[32];
    for (int device = 0; device < DEVICES; device++) {
        snprintf(path, sizeof(path), "/dev/vport%dp%d", device, number);
        int port = open(path, O_RDWR | O_CLOEXEC | O_NONBLOCK);
        if (port >= 0)
            return port;
    }
    return -1;
}

/* The kernel creates ports from a work queue some time after boot, and then finds out whether the host holds the other
 * end; before that a read would look like the end of input. */
int port_open(int number)
{
    enum { TRIES = 5000 };
    char name[32];
    int port = -1, tries = 0;
    for (; tries < TRIES && (port = port_try(number)) < 0; tries++)
        usleep(1000);
    for (; tries < TRIES; tries++) {
        struct pollfd wait = {.fd = port, .events = POLLOUT};
        if (poll(&wait, 1, 0) == 1 && !(wait.revents & POLLHUP))
            return port;
        usleep(1000);
    }
    snprintf(name, sizeof(name), "%d", number);
    die("no connection by virtio port", name);
}

void control_open(void)
{
    control = port_open(PORT_CONTROL);
}

int control_descriptor(void)
{
    return control;
}

void control_send(enum frame kind, const void *payload, size_t length)
{
    unsigned char head[5] = {(unsigned char)length, (unsigned char)(length >> 8),
                             (unsigned char)(length >> 16), (unsigned char)(length >> 24),
                             (unsigned char)kind};
    write_all(control, head, sizeof(head));
    write_all(control, payload, length);
}

void report_line(const char *format, ...)
{
    char text[16384];
    va_list arguments;
    va_start(arguments, format);
    int length = vsnprintf(text, sizeof(text), format, arguments);
    va_end(arguments);
    if (length > 0)
        control_send(FRAME_TEXT, text, (size_t)length < sizeof(text) ? (size_t)length : sizeof(text) - 1);
}

void die(const char *what, const char *which)
{
    int error = errno;
    if (control >= 0)
        report_line("error errno=%d what=%s %s: %s", error, what, which, strerror(error));
    else
        dprintf(2, "nearmiss agent: %s %s: %s\n", what, which, strerror(error));
    for (;;)
        pause();
}

const char *control_next(void)
{
    if (consumed) {
        memmove(pending, pending + consumed, pending_length - consumed);
        pending_length -= consumed;
        consumed = 0;
    }
    ssize_t n = read(control, pending + pending_length, sizeof(pending) - 1 - pending_length);
    if (n > 0)
        pending_length += (size_t)n;
    if (pending_length < 5)
        return NULL;
    const unsigned char *head = (const unsigned char *)pending;
    size_t length = head[0] | (size_t)head[1] << 8 | (size_t)head[2] << 16 | (size_t)head[3] << 24;
    if (length > sizeof(pending) - 6)
        die("too long an order from", "the host");
    if (pending_length < 5 + length)
        return NULL;
    /* The payload moves over its header, which makes room for the NUL. */
    memmove(pending, pending + 5, length);
    pending[length] = 0;
    consumed = 5 + length;
    return pending;
}

const char *control_wait(void)
{
    for (;;) {
        const char *order = control_next();
        if (order)
            return order;
        struct pollfd wait = {.fd = control, .events = POLLIN};
        poll(&wait, 1, -1);
        if (wait.revents & POLLHUP)
            usleep(1000);
    }
}

static void receive_more(void)
{
    pending_length = 0;
    while (pending_length == 0) {
        struct pollfd wait = {.fd = control, .events = POLLIN};
        poll(&wait, 1, -1);
        ssize_t n = read(control, pending, sizeof(pending) - 1);
        if (n > 0)
            pending_length = (size_t)n;
        else if (wait.revents & POLLHUP)
            usleep(1000);
    }
    consumed = 0;
}

void control_receive(int file, size_t length)
{
    while (length) {
        size_t have = pending_length - consumed;
        if (!have) {
            receive_more();
            continue;
        }
        size_t part = have < length ? have : length;
        write_all(file, pending + consumed, part);
        consumed += part;
        length -= part;
    }
}

void control_await(pid_t child, const char *enough)
{
    int ended = (int)syscall(SYS_pidfd_open, child, 0);
    if (child < 0 || ended < 0)
        die("cannot wait for", "what runs ahead of the command");
    while (waitpid(child, NULL, WNOHANG) == 0) {
        struct pollfd waits[] = {{.fd = ended, .events = POLLIN}, {.fd = control, .events = POLLIN}};
        poll(waits, 2, -1);
        for (const char *order; waits[1].revents & POLLIN && (order = control_next());) {
            if (!strcmp(order, enough)) {
                kill(-child, SIGKILL);
                kill(child, SIGKILL);
            } else {
                relay_resize(order);
            }
        }
    }
    close(ended);
}
