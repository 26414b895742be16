/* SPDX-License-Identifier: MIT OR Apache-2.0
 *
 * The guardian on the host's side: runs the file server and QEMU so that both die with nearmiss in any case, and so
 * that neither can write to the host.
 *
 *   guard LIFELINE REPORT FDS -- PROGRAM ARGUMENT... -- FDS -- PROGRAM ARGUMENT...
 *
 * The first program is the file server, which may be missing, the second QEMU; FDS is a comma-separated list of the
 * descriptors that the program keeps. nearmiss holds the other end of LIFELINE: when it is closed, all ends at once; a
 * byte requests QEMU to end by itself. REPORT gets lines of text.
 *
 * Two processes: the outer waits on the lifeline; the inner is process 1 of a new PID namespace,
 * with which everything below it dies. Each notices the other's death.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <linux/capability.h>
#include <linux/close_range.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

/* The tree that the guest sees, below a mount of this namespace only. */
#define STAGE "/run"
#define SHARED STAGE "/root"
#define NOTHING STAGE "/nothing"

static int report_fd;

struct program {
    char *descriptors;
    char **argv;
    bool privileged; /* keeps its capabilities within the user namespace */
    pid_t pid;
};

static void report(const char *text, const char *detail)
{
    dprintf(report_fd, "%s%s\n", text, detail);
}

static void give_up(const char *what) __attribute__((noreturn));
static void give_up(const char *what)
{
    dprintf(report_fd, "error %s: %s\n", what, strerror(errno));
    _exit(1);
}

static void put(const char *path, const char *text)
{
    int file = open(path, O_WRONLY | O_CLOEXEC);
    if (file < 0 || write(file, text, strlen(text)) != (ssize_t)strlen(text))
        give_up(path);
    close(file);
}

/* A container's filter forbids with the same error with which the kernel refuses. */
static void give_up_namespaces(void) __attribute__((noreturn));
static void give_up_namespaces(void)
{
    int error = errno;
    bool is_filtered = prctl(PR_GET_SECCOMP) == 2; /* SECCOMP_MODE_FILTER */
    errno = error;
    if (is_filtered && error == EPERM)
        give_up("cannot make namespaces, which a seccomp filter forbids, as containers have one: start the container "
                "with --cap-add SYS_ADMIN or with a profile that allows what docs/containers.md lists, or trace on "
                "the host");
    give_up("cannot make a user namespace, which is needed without root (sysctl user.max_user_namespaces, "
            "kernel.unprivileged_userns_clone, kernel.apparmor_restrict_unprivileged_userns)");
}

/* New namespaces; without the privilege for them, in a new user namespace that maps this user only. */
static bool separate(void)
{
    char map[64];
    const int wanted = CLONE_NEWNS | CLONE_NEWPID | CLONE_NEWNET | CLONE_NEWIPC;
    if (unshare(wanted) == 0)
        return false;
    if (errno != EPERM)
        give_up("cannot make namespaces");
    uid_t uid = geteuid();
    gid_t gid = getegid();
    if (unshare(CLONE_NEWUSER | wanted) != 0)
        give_up_namespaces();
    put("/proc/self/setgroups", "deny");
    snprintf(map, sizeof(map), "%u %u 1", uid, uid);
    put("/proc/self/uid_map", map);
    snprintf(map, sizeof(map), "%u %u 1", gid, gid);
    put("/proc/self/gid_map", map);
    return true;
}

/* Covers a directory of the copy with an empty one, and anything else with an empty file. */
static void hide(const char *path)
{
    struct stat status;
    /* Absent, or a link elsewhere: nothing to hide. */
    if (lstat(path, &status) != 0 || S_ISLNK(status.st_mode))
        return;
    int failed = S_ISDIR(status.st_mode)
                     ? mount("none", path, "tmpfs", MS_RDONLY | MS_NOSUID | MS_NODEV, "size=4k,mode=0555")
                     : mount(NOTHING, path, NULL, MS_BIND, NULL);
    if (failed)
        give_up(path);
}

/* Returns whether a file system's files are the host's kernel, wherever they are mounted. */
static bool is_kernels(const char *type)
{
    static const char *const types[] = {
        "proc", "sysfs", "devtmpfs", "devpts", "securityfs", "debugfs", "tracefs", "bpf", "cgroup", "cgroup2",
        "configfs", "fusectl", "pstore", "efivarfs", "selinuxfs", "rpc_pipefs", "autofs", "nsfs", "mqueue", "binfmt_misc"};
    for (size_t i = 0; i < sizeof(types) / sizeof(*types); i++)
        if (!strcmp(type, types[i]))
            return true;
    return false;
}

/* mountinfo writes space, tab, newline and backslash as \ and three octal digits (proc(5)). */
static void decode(char *path)
{
    char *to = path;
    for (const char *from = path; *from; to++) {
        if (from[0] == '\\' && from[1] && from[2] && from[3]) {
            *to = (char)((from[1] - '0') << 6 | (from[2] - '0') << 3 | (from[3] - '0'));
            from += 4;
        } else {
            *to = *from++;
        }
    }
    *to = 0;
}

/* Below the copy, hides what shows the host's kernel elsewhere than at its usual place, as a chroot's /proc does. The
 * list is read whole first: each mount changes it. */
static void hide_kernels_files(void)
{
    FILE *list = fopen("/proc/self/mountinfo", "re");
    char *line = NULL, **found = NULL;
    size_t room = 0, count = 0;
    if (!list)
        give_up("/proc/self/mountinfo");
    while (getline(&line, &room, list) > 0) {
        char *path = NULL, *type = strstr(line, " - ");
        if (!type || sscanf(line, "%*s %*s %*s %*s %ms", &path) != 1)
            continue;
        type = strtok(type + 3, " ");
        decode(path);
        if (!type || !is_kernels(type) || strncmp(path, SHARED "/", strlen(SHARED "/"))) {
            free(path);
            continue;
        }
        char **more = realloc(found, (count + 1) * sizeof(*found));
        if (!more)
            give_up("memory");
        found = more;
        found[count++] = path;
    }
    fclose(list);
    free(line);
    for (size_t i = 0; i < count; i++) {
        hide(found[i]);
        free(found[i]);
    }
    free(found);
}

/* A copy of the whole tree without the host's proc, sys, dev and run, then everything in this
 * namespace read-only, so that no request of the guest can write, whoever makes it. */
static void build_shared_tree(void)
{
    struct mount_attr read_only = {.attr_set = MOUNT_ATTR_RDONLY};
    if (mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) != 0)
        give_up("cannot make the mounts private");
    int tree = (int)syscall(SYS_open_tree, AT_FDCWD, "/", OPEN_TREE_CLONE | AT_RECURSIVE | OPEN_TREE_CLOEXEC);
    if (tree < 0)
        give_up("cannot copy the mount tree");
    if (mount("none", STAGE, "tmpfs", MS_NOSUID | MS_NODEV, "size=64k,mode=0755") != 0)
        give_up("cannot mount over " STAGE);
    int nothing = open(NOTHING, O_WRONLY | O_CREAT | O_CLOEXEC, 0444);
    if (nothing < 0)
        give_up(NOTHING);
    close(nothing);
    if (mkdir(SHARED, 0755) != 0 ||
        syscall(SYS_move_mount, tree, "", AT_FDCWD, SHARED, MOVE_MOUNT_F_EMPTY_PATH) != 0)
        give_up("cannot mount the copy of the tree");
    close(tree);
    hide(SHARED "/proc");
    hide(SHARED "/sys");
    hide(SHARED "/dev");
    hide(SHARED "/run");
    hide_kernels_files();
    if (syscall(SYS_mount_setattr, AT_FDCWD, "/", AT_RECURSIVE, &read_only, sizeof(read_only)) != 0)
        give_up("cannot make the mounts read-only");
}

/* A user other than root loses its capabilities over execve unless they are ambient. */
static void keep_capabilities(void)
{
    struct __user_cap_header_struct header = {.version = _LINUX_CAPABILITY_VERSION_3};
    struct __user_cap_data_struct data[2];
    if (syscall(SYS_capget, &header, data) != 0)
        give_up("capget");
    for (int i = 0; i < 2; i++)
        data[i].inheritable = data[i].permitted;
    if (syscall(SYS_capset, &header, data) != 0)
        give_up("capset");
    for (unsigned i = 0; i < 64; i++)
        if (data[i / 32].permitted >> (i % 32) & 1)
            prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_RAISE, i, 0, 0);
}

static void start(struct program *program)
{
    pid_t parent = getpid();
    program->pid = fork();
    if (program->pid < 0)
        give_up("cannot fork");
    if (program->pid > 0)
        return;
    if (program->privileged)
        keep_capabilities();
    syscall(SYS_close_range, 3u, ~0u, CLOSE_RANGE_CLOEXEC);
    for (char *number = strtok(program->descriptors, ","); number; number = strtok(NULL, ","))
        fcntl(atoi(number), F_SETFD, 0);
    signal(SIGPIPE, SIG_DFL);
    sigset_t none;
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, NULL);
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != parent)
        _exit(1);
    execvp(program->argv[0], program->argv);
    give_up(program->argv[0]);
}

static void describe(const char *who, int status)
{
    char text[64];
    snprintf(text, sizeof(text), " %s %d", WIFSIGNALED(status) ? "signal" : "exit",
             WIFSIGNALED(status) ? WTERMSIG(status) : WEXITSTATUS(status));
    report(who, text);
}

/* Ends when QEMU does. The file server ends by itself when QEMU closes the connection, so its end
 * is only news when QEMU is still there a second later. */
static void inner(int lifeline, struct program *server, struct program *qemu)
{
    sigset_t ends;
    int server_status = -1, status;
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    prctl(PR_SET_NAME, "nearmiss-inner");
    sigemptyset(&ends);
    sigaddset(&ends, SIGCHLD);
    sigprocmask(SIG_BLOCK, &ends, NULL);
    int ended = signalfd(-1, &ends, SFD_CLOEXEC | SFD_NONBLOCK);
    build_shared_tree();
    if (server->argv[0])
        start(server);
    start(qemu);
    for (;;) {
        struct pollfd waits[2] = {{.fd = lifeline, .events = POLLIN}, {.fd = ended, .events = POLLIN}};
        int ready = poll(waits, 2, server_status < 0 ? -1 : 1000);
        struct signalfd_siginfo information;
        while (read(ended, &information, sizeof(information)) > 0)
            ;
        for (pid_t pid; (pid = waitpid(-1, &status, WNOHANG)) > 0;) {
            if (pid == qemu->pid) {
                describe("qemu", status);
                _exit(0);
            }
            if (pid == server->pid)
                server_status = status;
        }
        if (ready == 0) {
            describe("fileserver", server_status);
            _exit(0);
        }
        char order;
        if (waits[0].revents) {
            if (read(lifeline, &order, 1) != 1)
                _exit(0);
            kill(qemu->pid, SIGTERM);
        }
    }
}

/* Passes orders on, and ends all when either side is gone. */
static void outer(int lifeline, int orders, pid_t child)
{
    for (;;) {
        struct pollfd waits[2] = {{.fd = lifeline, .events = POLLIN}, {.fd = orders, .events = 0}};
        char order;
        if (poll(waits, 2, -1) < 0)
            continue;
        if (waits[1].revents)
            break;
        if (waits[0].revents && (read(lifeline, &order, 1) != 1 || write(orders, &order, 1) != 1))
            break;
    }
    kill(child, SIGKILL);
    waitpid(child, NULL, 0);
}

/* Ends a list of arguments at the next "--" and returns what follows. */
static char **part_after(char **arguments)
{
    while (*arguments && strcmp(*arguments, "--"))
        arguments++;
    if (!*arguments)
        exit(2);
    *arguments = NULL;
    return arguments + 1;
}

int main(int count, char **arguments)
{
    int orders[2];
    if (count < 8)
        return 2;
    int lifeline = atoi(arguments[1]);
    report_fd = atoi(arguments[2]);
    struct program server = {.descriptors = arguments[3], .argv = part_after(arguments + 4)};
    char **rest = part_after(server.argv);
    struct program qemu = {.descriptors = rest[0], .argv = part_after(rest + 1)};

    prctl(PR_SET_NAME, "nearmiss-guard");
    setsid(); /* the terminal's signals are nearmiss's to pass on */
    signal(SIGPIPE, SIG_IGN);
    server.privileged = separate();
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, orders) != 0)
        give_up("socketpair");
    pid_t child = fork();
    if (child < 0)
        give_up("cannot fork");
    if (child == 0) {
        close(orders[0]);
        close(lifeline);
        inner(orders[1], &server, &qemu);
    }
    close(orders[1]);
    outer(lifeline, orders[0], child);
    return 0;
}
