/* SPDX-License-Identifier: MIT OR Apache-2.0
 *
 * A guest that is booted once, saved, and restored for each run. It waits where all that runs have in common is done, and
 * nothing of a run is there: no file server, no command, no file of the host. A restored guest goes on here, with random
 * numbers and a clock of its own.
 */
#include "agent.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/random.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#define ENTROPY_FILE "/entropy"
enum { ENTROPY_BYTES = 64 };

/* "file MODE SIZE PATH", and then the file's bytes. */
static void take_file(const char *order)
{
    unsigned mode;
    size_t size;
    char path[256];
    if (sscanf(order, "file %o %zu %255s", &mode, &size, path) != 3)
        die("cannot understand", order);
    int file = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, mode);
    if (file < 0)
        die("cannot make", path);
    control_receive(file, size);
    close(file);
}

/* All guests that are restored from one state would have the same random numbers otherwise. */
static void reseed(void)
{
    struct {
        struct rand_pool_info head;
        unsigned char bytes[ENTROPY_BYTES];
    } seed = {.head = {.entropy_count = 8 * ENTROPY_BYTES, .buf_size = ENTROPY_BYTES}};
    int file = open(ENTROPY_FILE, O_RDONLY | O_CLOEXEC);
    if (file < 0 || read(file, seed.bytes, sizeof(seed.bytes)) != (ssize_t)sizeof(seed.bytes))
        die("cannot read", ENTROPY_FILE);
    close(file);
    unlink(ENTROPY_FILE);
    int pool = open("/dev/urandom", O_WRONLY | O_CLOEXEC);
    if (pool < 0 || ioctl(pool, RNDADDENTROPY, &seed) != 0 || ioctl(pool, RNDRESEEDCRNG) != 0)
        die("cannot reseed", "/dev/urandom");
    close(pool);
}

/* "restored SECONDS NANOSECONDS": the time of day. */
static bool goes_on(const char *order)
{
    long long seconds, nanoseconds;
    if (sscanf(order, "restored %lld %lld", &seconds, &nanoseconds) != 2)
        return false;
    struct timespec now = {.tv_sec = seconds, .tv_nsec = nanoseconds};
    clock_settime(CLOCK_REALTIME, &now);
    return true;
}

void saved_wait(void)
{
    uint64_t waited_ms;
    root_load_overlay();
    mlockall(MCL_CURRENT | MCL_FUTURE);
    facts_perf_rings_open();
    facts_settle(&waited_ms);
    report_line("booted");
    for (const char *order; !goes_on(order = control_wait());)
        take_file(order);
    reseed();
    report_line("restored");
}
