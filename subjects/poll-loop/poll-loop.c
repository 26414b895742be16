/* SPDX-License-Identifier: MIT OR Apache-2.0
 *
 * --calls polls of one pipe without waiting, then as many system calls of another kind; prints what one of each
 * takes. */
#include "subject.h"
#include <poll.h>
#include <sys/syscall.h>
#include <unistd.h>

int main(int argc, char **argv) {
    uint64_t calls = 1000000;
    const struct subject_option options[] = {
        {"calls", "polls, and then calls of another kind", &calls, 0},
        {0},
    };
    subject_options(argc, argv, "Makes two kinds of system call as fast as it can.", options);
    int silent[2];
    if (pipe(silent) != 0 || calls == 0)
        subject_fail(argv[0], "--calls is at least 1, and a pipe is needed");
    struct pollfd one = {silent[0], POLLIN, 0};
    double start = subject_now_ns();
    for (uint64_t i = 0; i < calls; i++)
        if (poll(&one, 1, 0) != 0)
            subject_fail(argv[0], "an empty pipe has nothing to read");
    double polled = subject_now_ns();
    for (uint64_t i = 0; i < calls; i++)
        syscall(SYS_getppid);
    printf("poll-loop: calls=%llu poll_ns=%.1f other_ns=%.1f\n", (unsigned long long)calls,
           (polled - start) / (double)calls, (subject_now_ns() - polled) / (double)calls);
    return 0;
}
