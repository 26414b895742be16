/* SPDX-License-Identifier: MIT OR Apache-2.0
 *
 * A whole run of the command ahead of the window. It has an overlay of its own over the recorded run's root, so that
 * names and pages of files are in the caches of the very file system that the recorded run will see, and what it writes
 * vanishes. Its processes have namespaces of their own and end with their first; its output is thrown away.
 */
#define _GNU_SOURCE
#include "agent.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

/* Made and removed in the guest's own /run, under which the run ahead gets its mounts. */
#define PLACE "/run/nearmiss-warm"
#define INSIDE PLACE "/root"

/* Report of the run's first process: how the command ended, or what could not be done. */
struct result {
    bool ended;
    int status;
    char failed[128];
};

static int spool = -1;

void warm_run_prepare(void)
{
    spool = open("/warm-input", O_RDONLY | O_CLOEXEC);
    unlink("/warm-input");
}

static const char *mount_all(const struct config *config)
{
    const struct {
        const char *source, *target, *type;
        unsigned long flags;
        const char *options;
    } mounts[] = {
        {NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL},
        {"warm", PLACE, "tmpfs", 0, config->overlay_options},
        {"root", INSIDE, "overlay", 0,
         "lowerdir=/,upperdir=" PLACE "/upper,workdir=" PLACE "/work,redirect_dir=on,volatile"},
        {"proc", INSIDE "/proc", "proc", MS_NOSUID | MS_NODEV | MS_NOEXEC, NULL},
        {"/sys", INSIDE "/sys", NULL, MS_BIND | MS_REC, NULL},
        {"/dev", INSIDE "/dev", NULL, MS_BIND | MS_REC, NULL},
        {"shm", INSIDE "/dev/shm", "tmpfs", MS_NOSUID | MS_NODEV, "mode=1777"},
        {"run", INSIDE "/run", "tmpfs", MS_NOSUID | MS_NODEV, "mode=0755"},
    };
    for (size_t i = 0; i < ARRAY_LENGTH(mounts); i++) {
        if (mount(mounts[i].source, mounts[i].target, mounts[i].type, mounts[i].flags, mounts[i].options) != 0)
            return mounts[i].target;
        if (i == 1 && (mkdir(PLACE "/upper", 0755) || mkdir(PLACE "/work", 0755) || mkdir(INSIDE, 0755)))
            return PLACE;
    }
    return NULL;
}

static const char *own_root(const struct config *config)
{
    const char *failed = mount_all(config);
    if (failed)
        return failed;
    mkdir(INSIDE "/run/lock", 01777);
    chmod(INSIDE "/run/lock", 01777);
    if (config->has_preload) {
        mkdir(INSIDE "/run/nearmiss", 0755);
        if (mount("/run/nearmiss", INSIDE "/run/nearmiss", NULL, MS_BIND, NULL) != 0)
            return "/run/nearmiss";
    }
    if (chroot(INSIDE) != 0 || chdir("/") != 0)
        return INSIDE;
    root_loopback_up();
    return NULL;
}

static void carry(int from, int to) __attribute__((noreturn));
static void carry(int from, int to)
{
    char block[65536];
    for (ssize_t n; (n = read(from, block, sizeof(block))) > 0;)
        if (to >= 0)
            write_all(to, block, (size_t)n);
    _exit(0);
}

/* A pipe's end for the command, the other end with a process that feeds it the spooled input, or empties it. */
static int piped(bool input)
{
    int ends[2];
    if (pipe2(ends, O_CLOEXEC))
        return -1;
    int ours = ends[input ? 1 : 0], its = ends[input ? 0 : 1];
    if (fork() == 0) {
        close(its);
        carry(input ? spool : ours, input ? ours : -1);
    }
    close(ours);
    return its;
}

static int input_of(const struct stream *stream)
{
    if (stream->kind == STREAM_PORT && spool >= 0)
        return piped(true);
    if (stream->kind != STREAM_FILE)
        return open("/dev/null", O_RDONLY | O_CLOEXEC);
    int file = open(stream->path, O_RDONLY | O_CLOEXEC);
    lseek(file, stream->offset, SEEK_SET);
    return file;
}

/* The command's three descriptors; made by the first process, so that the command has no children but its own. */
static void streams_make(const struct config *config, int sides[3])
{
    const int thrown_away = piped(false);
    sides[0] = input_of(&config->streams[0]);
    for (int i = 1; i < 3; i++)
        sides[i] = config->streams[i].kind == STREAM_NULL ? open("/dev/null", O_RDWR | O_CLOEXEC) : thrown_away;
    for (int i = 0; i < 3; i++)
        sides[i] = sides[i] >= 0 ? fcntl(sides[i], F_DUPFD_CLOEXEC, 10) : -1;
}

static void streams_enter(const struct config *config, const int sides[3])
{
    setsid();
    for (int i = 0; i < 3; i++)
        if (config->streams[i].kind == STREAM_CLOSED || sides[i] < 0)
            close(i);
        else
            dup2(sides[i], i);
}

/* The first process of the run's namespace: when it ends, the kernel ends all others. */
static void first(const struct config *config, int report) __attribute__((noreturn));
static void first(const struct config *config, int report)
{
    struct result result = {.ended = false};
    const char *failed = own_root(config);
    if (failed) {
        snprintf(result.failed, sizeof(result.failed), "%s: %s", failed, strerror(errno));
    } else {
        int sides[3];
        streams_make(config, sides);
        pid_t child = fork(), ended;
        if (child == 0) {
            streams_enter(config, sides);
            command_become(config);
        }
        while ((ended = waitpid(-1, &result.status, 0)) != child && (ended > 0 || errno == EINTR))
            ;
        result.ended = ended == child;
    }
    write_all(report, &result, sizeof(result));
    _exit(0);
}

void warm_run(const struct config *config)
{
    int report[2];
    struct result result = {.ended = false};
    const unsigned long own = CLONE_NEWPID | CLONE_NEWNS | CLONE_NEWIPC | CLONE_NEWNET | CLONE_NEWUTS;
    mkdir(PLACE, 0700);
    if (pipe2(report, O_CLOEXEC))
        die("cannot make", "a pipe");
    pid_t child = (pid_t)syscall(SYS_clone, own | SIGCHLD, NULL, NULL, NULL, NULL);
    if (child < 0)
        die("cannot make namespaces for", "the warm run");
    if (child == 0)
        first(config, report[1]);
    close(report[1]);
    control_await(child, "enough run");
    if (read(report[0], &result, sizeof(result)) != sizeof(result))
        result = (struct result){.ended = false};
    close(report[0]);
    close(spool);
    rmdir(PLACE);
    report_line("warm-run status=%d ended=%d failed=%s", result.status, result.ended, result.failed);
}
