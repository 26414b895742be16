/* SPDX-License-Identifier: MIT OR Apache-2.0
 *
 * Waits of the command's processes, as far as sockets show: raw facts, which the host reads.
 */
#include "agent.h"

#include <ctype.h>
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { MOST_TASKS = 64, MOST_LINES = 64, MOST_SOCKETS = 8 };

/* Adds the socket that a descriptor is to a list of numbers. */
static void add_socket(char *list, size_t size, const char *process, const char *descriptor)
{
    char path[600], target[64];
    unsigned long long inode;
    snprintf(path, sizeof(path), "/proc/%s/fd/%s", process, descriptor);
    ssize_t n = readlink(path, target, sizeof(target) - 1);
    target[n > 0 ? n : 0] = 0;
    size_t used = strlen(list);
    if (sscanf(target, "socket:[%llu]", &inode) == 1)
        snprintf(list + used, size - used, "%s%llu", used ? "," : "", inode);
}

static void add_all_sockets(char *list, size_t size, const char *process)
{
    char path[300];
    snprintf(path, sizeof(path), "/proc/%s/fd", process);
    DIR *all = opendir(path);
    int left = MOST_SOCKETS;
    for (struct dirent *entry; all && left && (entry = readdir(all));) {
        size_t before = strlen(list);
        add_socket(list, size, process, entry->d_name);
        left -= strlen(list) > before;
    }
    if (all)
        closedir(all);
}

/* Reports a task if it sleeps in a system call on sockets; returns whether it does. */
static bool report_task(const char *process, const char *task)
{
    char path[600], name[32] = "", sockets[256] = "", descriptor[24];
    long call = -1;
    unsigned long long first = 0;
    snprintf(path, sizeof(path), "/proc/%s/task/%s/syscall", process, task);
    FILE *file = fopen(path, "re");
    if (!file)
        return false;
    bool sleeps = fscanf(file, "%ld %llx", &call, &first) == 2;
    fclose(file);
    if (!sleeps)
        return false;
    switch (call) {
    case SYS_poll: case SYS_ppoll: case SYS_select: case SYS_pselect6: case SYS_epoll_wait: case SYS_epoll_pwait:
    case SYS_epoll_pwait2:
        add_all_sockets(sockets, sizeof(sockets), process);
        break;
    case SYS_read: case SYS_readv: case SYS_recvfrom: case SYS_recvmsg: case SYS_recvmmsg: case SYS_accept:
    case SYS_accept4: case SYS_connect: case SYS_write: case SYS_writev: case SYS_sendto: case SYS_sendmsg:
        snprintf(descriptor, sizeof(descriptor), "%llu", first);
        add_socket(sockets, sizeof(sockets), process, descriptor);
        break;
    default:
        break;
    }
    if (!sockets[0])
        return false;
    snprintf(path, sizeof(path), "/proc/%s/comm", process);
    if ((file = fopen(path, "re"))) {
        if (fgets(name, sizeof(name), file))
            name[strcspn(name, "\n")] = 0;
        fclose(file);
    }
    report_line("waits task process=%s call=%ld sockets=%s name=%s", process, call, sockets, name);
    return true;
}

static int report_tasks(const char *process, int left)
{
    char path[300];
    snprintf(path, sizeof(path), "/proc/%s/task", process);
    DIR *tasks = opendir(path);
    for (struct dirent *task; tasks && left && (task = readdir(tasks));)
        left -= isdigit((unsigned char)task->d_name[0]) && report_task(process, task->d_name);
    if (tasks)
        closedir(tasks);
    return left;
}

static void report_lines(const char *kind, const char *path)
{
    char line[512];
    FILE *file = fopen(path, "re");
    for (int left = MOST_LINES; file && left && fgets(line, sizeof(line), file); left--) {
        line[strcspn(line, "\n")] = 0;
        report_line("waits %s %s", kind, line);
    }
    if (file)
        fclose(file);
}

void waits_report(void)
{
    DIR *processes = opendir("/proc");
    int left = MOST_TASKS;
    for (struct dirent *process; processes && left && (process = readdir(processes));)
        if (isdigit((unsigned char)process->d_name[0]) && atoi(process->d_name) != getpid())
            left = report_tasks(process->d_name, left);
    if (processes)
        closedir(processes);
    report_lines("tcp", "/proc/net/tcp");
    report_lines("tcp", "/proc/net/tcp6");
    report_lines("udp", "/proc/net/udp");
    report_lines("unix", "/proc/net/unix");
    report_lines("counts", "/proc/net/snmp");
    report_line("waits end");
}
