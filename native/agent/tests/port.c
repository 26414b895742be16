/* SPDX-License-Identifier: MIT OR Apache-2.0
 *
 * A command that turns on the agent of its guest: takes the agent's port from process 1 and sends false reports.
 *
 *   port files      symbols and types of the kernel, then goes on
 *   port lines      lines without end, after an end that did not happen
 *   port extra      files that were not requested
 *   port long       a message of 4 GiB
 *   port half       half a message, then the power goes off
 *   port output     a terabyte of output that never comes
 *   port halt       halts the machine
 *   port window     closes the window, then goes on
 *
 * Exit status: 3 if the port is out of reach, 4 if the port cannot be written to.
 */
#define _GNU_SOURCE
#include "nearmiss_trigger.h"

#include <fcntl.h>
#include <poll.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/reboot.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { TEXT = 1, KALLSYMS = 2, BTF = 3, TAR = 4 };

static int port = -1;

/* The control port is the first that the agent opens. */
static void take_port(void)
{
    int init = (int)syscall(SYS_pidfd_open, 1, 0);
    for (int number = 3; init >= 0 && number < 64 && port < 0; number++) {
        char at[64], path[64] = "";
        int taken = (int)syscall(SYS_pidfd_getfd, init, number, 0);
        if (taken < 0)
            continue;
        snprintf(at, sizeof at, "/proc/self/fd/%d", taken);
        if (readlink(at, path, sizeof path - 1) > 0 && strstr(path, "/vport") && strstr(path, "p1"))
            port = taken;
    }
    if (port < 0) {
        perror("port");
        exit(3);
    }
}

static void put(const void *bytes, size_t length)
{
    for (const char *from = bytes; length;) {
        ssize_t n = write(port, from, length);
        if (n > 0) {
            from += n;
            length -= (size_t)n;
        } else if (poll(&(struct pollfd){.fd = port, .events = POLLOUT}, 1, 10000) != 1) {
            exit(4);
        }
    }
}

static void head(uint32_t length, uint8_t kind)
{
    const uint8_t bytes[5] = {(uint8_t)length, (uint8_t)(length >> 8), (uint8_t)(length >> 16),
                              (uint8_t)(length >> 24), kind};
    put(bytes, sizeof bytes);
}

static void frame(uint8_t kind, const char *text)
{
    head((uint32_t)strlen(text), kind);
    put(text, strlen(text));
}

static void files(void)
{
    frame(KALLSYMS, "ffffffff81000000 T forged\n");
    frame(KALLSYMS, "");
    frame(BTF, "forged");
    frame(BTF, "");
}

int main(int count, char **arguments)
{
    const char *attack = count > 1 ? arguments[1] : "";
    if (!strcmp(attack, "window")) {
        NEARMISS_TRIGGER(NEARMISS_TRIGGER_END);
        return 0;
    }
    if (!strcmp(attack, "halt")) {
        sync();
        return reboot(RB_HALT_SYSTEM);
    }
    take_port();
    if (!strcmp(attack, "files")) {
        files();
        sleep(20);
    } else if (!strcmp(attack, "lines")) {
        frame(TEXT, "ended status=0");
        for (;;)
            frame(TEXT, "kernel Out of memory: Killed process 7 (forged)");
    } else if (!strcmp(attack, "extra")) {
        frame(TEXT, "ended status=0");
        frame(TAR, "forged");
        sleep(20);
    } else if (!strcmp(attack, "long")) {
        head(UINT32_MAX, TEXT);
        sleep(20);
    } else if (!strcmp(attack, "half")) {
        head(100, TEXT);
        reboot(RB_POWER_OFF);
    } else if (!strcmp(attack, "output")) {
        frame(TEXT, "ended status=0");
        frame(TEXT, "exit status=0 terminal=0 output=1099511627776 error=0 oom=0 full=0");
        sleep(20);
    } else {
        return 2;
    }
    return 0;
}
