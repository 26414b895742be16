/* SPDX-License-Identifier: MIT OR Apache-2.0
 *
 * Preloaded into the file server when it does not run as root.
 *
 * The guest's overlay opens every file with O_NOATIME, which the host grants to a file's owner only; the share is
 * read-only, so opening it without does no harm.
 *
 * The server gives up its supplementary groups when it has any. A user namespace made without privilege forbids that
 * (user_namespaces(7), on /proc/PID/setgroups), and every login user has some. The groups stay: with them the server
 * may read what the user may read, and no more.
 *
 * The server in Rust refuses to change its root as anybody but root. In the namespace it has the capability that
 * chroot(2) requires, with any number, so it is called root where it looks; the kernel is not deceived.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <stdarg.h>
#include <sys/syscall.h>
#include <unistd.h>

static int open_at(int directory, const char *path, int flags, mode_t mode)
{
    long file = syscall(SYS_openat, directory, path, flags, mode);
    if (file < 0 && errno == EPERM && flags & O_NOATIME)
        file = syscall(SYS_openat, directory, path, flags & ~O_NOATIME, mode);
    return (int)file;
}

#define WITH_MODE(directory, path, flags)                                                  \
    va_list list;                                                                                  \
    va_start(list, flags);                                                                         \
    mode_t mode = (flags) & (O_CREAT | __O_TMPFILE) ? va_arg(list, mode_t) : 0;                    \
    va_end(list);                                                                                  \
    return open_at(directory, path, flags, mode)

int openat(int directory, const char *path, int flags, ...)
{
    WITH_MODE(directory, path, flags);
}

int openat64(int directory, const char *path, int flags, ...)
{
    WITH_MODE(directory, path, flags);
}

int open(const char *path, int flags, ...)
{
    WITH_MODE(AT_FDCWD, path, flags);
}

int open64(const char *path, int flags, ...)
{
    WITH_MODE(AT_FDCWD, path, flags);
}

int __openat_2(int directory, const char *path, int flags)
{
    return open_at(directory, path, flags, 0);
}

int __openat64_2(int directory, const char *path, int flags)
{
    return open_at(directory, path, flags, 0);
}

uid_t geteuid(void)
{
    return 0;
}

int setgroups(size_t count, const gid_t *groups)
{
    (void)groups;
    if (count == 0)
        return 0;
    errno = EPERM;
    return -1;
}
