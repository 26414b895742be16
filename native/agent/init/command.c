/* SPDX-License-Identifier: MIT OR Apache-2.0
 *
 * Starts the command as execvp would, with everything about it as it is outside. All that can be done before the window
 * opens is done before: the first instruction recorded is that of execve.
 */
#define _GNU_SOURCE
#include "agent.h"
#include "nearmiss_trigger.h"

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static const char *environment_value(char **environment, const char *name)
{
    size_t length = strlen(name);
    for (; *environment; environment++)
        if (!strncmp(*environment, name, length) && (*environment)[length] == '=')
            return *environment + length + 1;
    return NULL;
}

/* 0, or why this file cannot be executed. */
static int executable(const char *path)
{
    struct stat status;
    if (stat(path, &status) != 0)
        return errno;
    if (!S_ISREG(status.st_mode) || faccessat(AT_FDCWD, path, X_OK, AT_EACCESS) != 0)
        return EACCES;
    return 0;
}

int command_find(const struct config *config, const char *name, char *found, size_t size)
{
    if (strchr(name, '/')) {
        snprintf(found, size, "%s", name);
        return executable(found);
    }
    const char *path = environment_value(config->envp, "PATH");
    int result = ENOENT;
    if (!path)
        path = "/bin:/usr/bin";
    for (;;) {
        size_t length = strcspn(path, ":");
        snprintf(found, size, "%.*s%s%s", (int)length, path, length ? "/" : "", name);
        int error = executable(found);
        if (!error)
            return 0;
        if (error == EACCES)
            result = EACCES;
        if (!path[length])
            return result;
        path += length + 1;
    }
}

/* The kernel refuses what is neither ELF nor "#!"; execvp then runs a shell on it. */
static bool wants_shell(const char *path)
{
    char head[4] = {0};
    int file = open(path, O_RDONLY | O_CLOEXEC);
    if (file < 0)
        return false;
    ssize_t n = read(file, head, sizeof(head));
    close(file);
    return n >= 0 && memcmp(head, "#!", 2) && memcmp(head, "\177ELF", 4);
}

static void fail(int report, int error) __attribute__((noreturn));
static void fail(int report, int error)
{
    write_all(report, &error, sizeof(error));
    _exit(127);
}

static void restore_signals(uint64_t ignored)
{
    sigset_t none;
    for (int number = 1; number < 65; number++)
        signal(number, number <= 64 && ignored >> (number - 1) & 1 ? SIG_IGN : SIG_DFL);
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, NULL);
}

int command_settle(const struct config *config)
{
    for (size_t i = 0; i < config->limit_count; i++)
        setrlimit(config->limits[i].resource, &config->limits[i].value);
    if (chdir(config->directory) != 0)
        return errno | 1 << 16;
    umask(config->umask);
    if (setgroups(config->group_count, config->groups) != 0 || setresgid(config->gid, config->gid, config->gid) != 0 ||
        setresuid(config->uid, config->uid, config->uid) != 0)
        return errno | 2 << 16;
    return 0;
}

struct image {
    char path[4096];
    char **arguments;
};

/* 0, or why the command cannot be executed. */
static int image_of(const struct config *config, struct image *image)
{
    int error = command_find(config, config->argv[0], image->path, sizeof(image->path));
    image->arguments = config->argv;
    if (error || !wants_shell(image->path))
        return error;
    size_t count = 0;
    while (config->argv[count])
        count++;
    char **shell = calloc(count + 2, sizeof(char *));
    if (!shell)
        return ENOMEM;
    shell[0] = config->argv[0];
    shell[1] = strdup(image->path);
    memcpy(shell + 2, config->argv + 1, count * sizeof(char *));
    image->arguments = shell;
    strcpy(image->path, "/bin/sh");
    return 0;
}

static void prepare(const struct config *config, int report, struct image *image)
{
    write_file("/proc/self/oom_score_adj", "0");
    int error = command_settle(config);
    if (!error)
        error = image_of(config, image);
    if (error)
        fail(report, error);
    restore_signals(config->ignored_signals);
}

void command_become(const struct config *config)
{
    static struct image image;
    prepare(config, -1, &image);
    execve(image.path, image.arguments, config->envp);
    fail(-1, errno);
}

static void become_recorded(const struct config *config, int report, int go) __attribute__((noreturn));
static void become_recorded(const struct config *config, int report, int go)
{
    static struct image image;
    char byte;
    relay_enter(config);
    prepare(config, report, &image);
    /* The host needs the command's number before the window opens. */
    if (read(go, &byte, 1) != 1)
        fail(report, EPIPE);
    NEARMISS_TRIGGER(NEARMISS_TRIGGER_BEGIN);
    execve(image.path, image.arguments, config->envp);
    fail(report, errno);
}

static int start_report = -1;

pid_t command_start(const struct config *config)
{
    int report[2], go[2];
    if (pipe2(report, O_CLOEXEC) || pipe2(go, O_CLOEXEC))
        die("cannot make", "a pipe");
    pid_t child = fork();
    if (child < 0)
        die("cannot start", "the command");
    if (child == 0)
        become_recorded(config, report[1], go[0]);
    close(report[1]);
    close(go[0]);
    relay_started();
    report_line("begin pid=%d", (int)child);
    /* It stays open: the window may be open by now, and a close() there would count beside the command's. */
    write_all(go[1], "", 1);
    start_report = report[0];
    return child;
}

int command_refused(void)
{
    int why;
    return read(start_report, &why, sizeof(why)) == sizeof(why) ? why : 0;
}
