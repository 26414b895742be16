/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "agent.h"
#include "nearmiss_trigger.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

/* Waits for the host's word, which brings the time of day along. */
static void wait_for_go(void)
{
    for (;;) {
        const char *order = control_wait();
        long long seconds, nanoseconds;
        if (sscanf(order, "go %lld %lld", &seconds, &nanoseconds) == 2) {
            struct timespec now = {.tv_sec = seconds, .tv_nsec = nanoseconds};
            clock_settime(CLOCK_REALTIME, &now);
            return;
        }
    }
}

static bool overlay_full(void)
{
    struct statvfs status;
    return fstatvfs(root_upper(), &status) == 0 && status.f_bavail == 0;
}

static void run(const struct config *config)
{
    struct relay_totals totals;
    long kills = facts_oom_kills();
    pid_t child = command_start(config);
    int status = relay_until_exit(child);
    NEARMISS_TRIGGER(NEARMISS_TRIGGER_END);
    report_line("ended status=%d", status);
    relay_drain(&totals);
    int refused = command_refused();
    if (refused)
        report_line("refused stage=%s errno=%d", refused >> 16 == 1 ? "directory" : refused >> 16 == 2 ? "user" : "exec",
            refused & 0xffff);
    kills = facts_oom_kills() - kills;
    if (kills)
        facts_kernel_line("Out of memory: Killed process");
    if (WIFSIGNALED(status) && WTERMSIG(status) == SIGILL)
        facts_kernel_line("trap invalid opcode");
    if (config->send_overlay) {
        /* Processes that the command left running must not write while its files are read. */
        kill(-1, SIGKILL);
        while (waitpid(-1, NULL, 0) > 0)
            ;
        keep_send(root_upper());
    } else {
        keep_send_code_names(root_upper());
    }
    report_line("exit status=%d terminal=%llu output=%llu error=%llu oom=%ld full=%d", status,
        (unsigned long long)totals.terminal, (unsigned long long)totals.output,
        (unsigned long long)totals.error, kills, overlay_full());
}

int main(void)
{
    static struct config config;
    sigset_t ends;
    mkdir("/dev", 0755);
    mkdir("/proc", 0555);
    mkdir("/sys", 0555);
    mount("dev", "/dev", "devtmpfs", 0, NULL);
    mount("proc", "/proc", "proc", 0, NULL);
    /* The kernel starts init without these when the initramfs has no /dev/console. */
    for (int i = 0; i < 3; i++)
        if (fcntl(i, F_GETFD) < 0)
            open("/dev/console", O_RDWR);
    write_file("/proc/self/oom_score_adj", "-1000");
    signal(SIGPIPE, SIG_IGN);
    sigemptyset(&ends);
    sigaddset(&ends, SIGCHLD);
    sigprocmask(SIG_BLOCK, &ends, NULL);
    umask(0);

    root_load_drivers();
    control_open();
    if (access("/nearmiss.conf", F_OK) != 0)
        saved_wait();
    config_read(&config);
    warm_run_prepare();
    root_prepare(&config);
    relay_prepare(&config);
    mlockall(MCL_CURRENT | MCL_FUTURE);
    facts_perf_rings_open();
    facts_perf_rings_report();
    if (config.send_symbols) {
        facts_send_file(FRAME_KALLSYMS, "/proc/kallsyms");
        facts_send_file(FRAME_BTF, "/sys/kernel/btf/vmlinux");
    }
    facts_wait_quiet();
    report_line("ready");
    wait_for_go();
    if (config.warm >= WARM_FILES)
        warm_files(&config);
    if (config.warm >= WARM_RUN)
        warm_run(&config);
    if (config.warm >= WARM_FILES)
        start_ahead(&config);
    run(&config);
    for (;;)
        pause();
}
