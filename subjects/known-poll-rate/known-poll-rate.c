/* SPDX-License-Identifier: MIT OR Apache-2.0
 *
 * --calls polls, one each --every microseconds, of three descriptors of which one is ready; then --calls/4 polls that
 * find nothing and wait --wait milliseconds for it. */
#include "subject.h"
#include <poll.h>
#include <unistd.h>

int main(int argc, char **argv) {
    uint64_t calls = 1000, every_us = 2000, wait_ms = 2;
    const struct subject_option options[] = {
        {"calls", "polls that find an event", &calls, 0},
        {"every", "microseconds from one to the next", &every_us, 0},
        {"wait", "milliseconds that the empty ones wait", &wait_ms, 0},
        {0},
    };
    subject_options(argc, argv, "Polls at a known rate, with a known number of events.", options);
    int ready[2], silent[2], also_silent[2];
    if (every_us > 1000000 || pipe(ready) != 0 || pipe(silent) != 0 || pipe(also_silent) != 0)
        subject_fail(argv[0], "--every is at most 1000000, and three pipes are needed");
    if (write(ready[1], "x", 1) != 1)
        subject_fail(argv[0], "a pipe that cannot be written to");
    struct pollfd all[] = {{silent[0], POLLIN, 0}, {ready[0], POLLIN, 0}, {also_silent[0], POLLIN, 0}};
    uint64_t events = 0, empty = 0;
    struct timespec next;
    clock_gettime(CLOCK_MONOTONIC, &next);
    for (uint64_t i = 0; i < calls; i++) {
        next.tv_nsec += (long)every_us * 1000;
        next.tv_sec += next.tv_nsec / 1000000000;
        next.tv_nsec %= 1000000000;
        clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &next, NULL);
        int n = poll(all, 3, 0);
        events += n > 0 ? (uint64_t)n : 0;
    }
    double start = subject_now_ns();
    for (uint64_t i = 0; i < calls / 4; i++)
        empty += poll(all, 1, (int)wait_ms) == 0;
    double blocked = subject_now_ns() - start;
    printf("known-poll-rate: calls=%llu asked=%llu events=%llu empty=%llu empty_ns=%.0f\n",
           (unsigned long long)(calls + calls / 4), (unsigned long long)(3 * calls + calls / 4),
           (unsigned long long)events, (unsigned long long)empty, blocked);
    return 0;
}
