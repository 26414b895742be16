/* SPDX-License-Identifier: MIT OR Apache-2.0
 *
 * Facts that the consumer needs in order to read this guest from outside: where the kernel writes its records of maps
 * and tasks, its symbols and types, and that nothing else runs.
 */
#include "agent.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/perf_event.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#define PAGE 4096UL
#define RING_PAGES 256UL
enum { MAX_RINGS = 1024 };

static struct {
    long count;
    uintptr_t at[MAX_RINGS];
} rings;

/* Mapped read-only, a ring is never full: the kernel overwrites the oldest records. The host finds its pages through
 * our page tables: since Linux 6.16 /proc/self/pagemap shows none of them. */
static void perf_ring(int cpu)
{
    struct perf_event_attr attributes = {
        .type = PERF_TYPE_SOFTWARE,
        .size = sizeof(attributes),
        .config = PERF_COUNT_SW_DUMMY,
        .sample_type = PERF_SAMPLE_TID | PERF_SAMPLE_TIME | PERF_SAMPLE_CPU,
        .sample_id_all = 1,
        .mmap = 1,
        .mmap2 = 1,
        .mmap_data = 1,
        .comm = 1,
        .comm_exec = 1,
        .task = 1,
        .exclude_kernel = 0,
    };
    char number[16];
    snprintf(number, sizeof(number), "cpu%d", cpu);
    int event = (int)syscall(SYS_perf_event_open, &attributes, -1, cpu, -1, PERF_FLAG_FD_CLOEXEC);
    if (event < 0)
        die("cannot open the perf event of", number);
    volatile char *ring = mmap(NULL, (1 + RING_PAGES) * PAGE, PROT_READ, MAP_SHARED, event, 0);
    if (ring == MAP_FAILED)
        die("cannot map the perf ring of", number);
    for (unsigned long page = 0; page <= RING_PAGES; page++)
        (void)ring[page * PAGE]; /* older kernels map a page when it is touched */
    rings.at[cpu] = (uintptr_t)ring;
}

void facts_perf_rings_open(void)
{
    if (rings.count)
        return; /* before the guest was saved */
    rings.count = sysconf(_SC_NPROCESSORS_ONLN);
    if (rings.count > MAX_RINGS)
        rings.count = MAX_RINGS;
    for (int cpu = 0; cpu < rings.count; cpu++)
        perf_ring(cpu);
}

void facts_perf_rings_report(void)
{
    for (int cpu = 0; cpu < rings.count; cpu++)
        report_line("perf cpu=%d at=0x%llx pages=%lu", cpu, (unsigned long long)rings.at[cpu], 1 + RING_PAGES);
}

void facts_send_file(enum frame kind, const char *path)
{
    static char block[65536];
    int file = open(path, O_RDONLY | O_CLOEXEC);
    if (file >= 0) {
        size_t have = 0;
        for (ssize_t n; (n = read(file, block + have, sizeof(block) - have)) > 0;) {
            have += (size_t)n;
            if (have == sizeof(block)) {
                control_send(kind, block, have);
                have = 0;
            }
        }
        if (have)
            control_send(kind, block, have);
        close(file);
    }
    control_send(kind, "", 0);
}

static uint64_t now_ns(void)
{
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (uint64_t)time.tv_sec * 1000000000ULL + (uint64_t)time.tv_nsec;
}

/* Nanoseconds that tasks have run, over all CPUs: the seventh figure of each cpu line. */
static uint64_t ran_ns(void)
{
    char line[512];
    uint64_t total = 0;
    FILE *file = fopen("/proc/schedstat", "re");
    if (!file)
        return 0;
    while (fgets(line, sizeof(line), file)) {
        unsigned long long ran;
        if (sscanf(line, "cpu%*u %*u %*u %*u %*u %*u %*u %llu", &ran) == 1)
            total += ran;
    }
    fclose(file);
    return total;
}

/* Quiet: in two windows in a row, tasks ran for less than a tenth of one CPU. Work left by the boot (key generation,
 * self tests) would otherwise be recorded as if it were the command's. */
bool facts_settle(uint64_t *waited_ms)
{
    enum { WINDOW_US = 25000, LONGEST_MS = 3000, WANTED = 2 };
    uint64_t begin = now_ns(), last_time = begin, last_ran = ran_ns();
    int quiet = 0;
    while (quiet < WANTED && now_ns() - begin < LONGEST_MS * 1000000ULL) {
        usleep(WINDOW_US);
        uint64_t time = now_ns(), ran = ran_ns();
        quiet = (ran - last_ran) * 10 < time - last_time ? quiet + 1 : 0;
        last_time = time;
        last_ran = ran;
    }
    *waited_ms = (now_ns() - begin) / 1000000;
    return quiet >= WANTED;
}

void facts_wait_quiet(void)
{
    uint64_t waited_ms;
    bool settled = facts_settle(&waited_ms);
    report_line("quiet ms=%llu settled=%d", (unsigned long long)waited_ms, settled);
}

long facts_oom_kills(void)
{
    char line[128];
    long kills = 0;
    FILE *file = fopen("/proc/vmstat", "re");
    if (!file)
        return 0;
    while (fgets(line, sizeof(line), file))
        sscanf(line, "oom_kill %ld", &kills);
    fclose(file);
    return kills;
}

void facts_kernel_line(const char *needle)
{
    char record[8192], last[8192] = "";
    int log = open("/dev/kmsg", O_RDONLY | O_NONBLOCK | O_CLOEXEC);
    if (log < 0)
        return;
    for (;;) {
        ssize_t n = read(log, record, sizeof(record) - 1);
        if (n < 0 && errno == EPIPE)
            continue;
        if (n <= 0)
            break;
        record[n] = 0;
        char *text = strchr(record, ';');
        if (text && strstr(text, needle)) {
            text[1 + strcspn(text + 1, "\n")] = 0;
            strcpy(last, text + 1);
        }
    }
    close(log);
    if (*last)
        report_line("kernel %s", last);
}
