/* SPDX-License-Identifier: MIT OR Apache-2.0
 *
 * The command's root: the host's, read-only over virtiofs, under an overlay with a tmpfs as its upper directory; its
 * own proc, sys, dev, devpts, shm and run.
 */
#include "agent.h"

#include <errno.h>
#include <fcntl.h>
#include <net/if.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mount.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

static int upper = -1;

int root_upper(void)
{
    return upper;
}

static void must_mount(const char *source, const char *target, const char *type,
                       unsigned long flags, const char *options)
{
    mkdir(target, 0755);
    if (mount(source, target, type, flags, options) != 0)
        die("cannot mount", target);
}

/* Returns false where there is no such file. */
static bool load(const char *path)
{
    int module = open(path, O_RDONLY | O_CLOEXEC);
    if (module < 0)
        return false;
    if (syscall(SYS_finit_module, module, "", 0) != 0 && errno != EEXIST)
        die("cannot load", path);
    close(module);
    unlink(path);
    return true;
}

void root_load_drivers(void)
{
    char path[32];
    int number = 0;
    do
        snprintf(path, sizeof(path), "/drivers/%d.ko", number++);
    while (load(path));
}

void root_load_overlay(void)
{
    load("/overlay.ko"); /* else built into this kernel */
}

/* In a restored guest the file server is plugged in, and the kernel takes notice of it meanwhile. */
static void mount_files(void)
{
    enum { TRIES = 20000 };
    int tries = 0;
    mkdir("/lower", 0755);
    while (mount("root", "/lower", "virtiofs", MS_RDONLY, NULL) != 0) {
        if (errno != EINVAL || ++tries == TRIES)
            die("cannot mount", "/lower");
        usleep(1000);
    }
}

void root_loopback_up(void)
{
    struct ifreq request = {.ifr_name = "lo"};
    int socket_ = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    if (socket_ < 0)
        return;
    if (ioctl(socket_, SIOCGIFFLAGS, &request) == 0) {
        request.ifr_flags |= IFF_UP;
        ioctl(socket_, SIOCSIFFLAGS, &request);
    }
    close(socket_);
}

static void copy_preload(void)
{
    char block[65536];
    int from = open("/preload.so", O_RDONLY | O_CLOEXEC);
    mkdir("/root/run/nearmiss", 0755);
    int to = open("/root/run/nearmiss/preload.so", O_WRONLY | O_CREAT | O_CLOEXEC, 0755);
    if (from < 0 || to < 0)
        die("cannot copy", "the preloaded library");
    for (ssize_t n; (n = read(from, block, sizeof(block))) > 0;)
        write_all(to, block, (size_t)n);
    close(from);
    close(to);
    unlink("/preload.so");
}

void root_prepare(const struct config *config)
{
    root_load_overlay();
    must_mount("overlay", "/layer", "tmpfs", 0, config->overlay_options);
    mkdir("/layer/upper", 0755);
    mkdir("/layer/work", 0755);
    mount_files();
    must_mount("root", "/root", "overlay", 0,
               "lowerdir=/lower,upperdir=/layer/upper,workdir=/layer/work,redirect_dir=on,volatile");
    upper = open("/layer/upper", O_RDONLY | O_DIRECTORY | O_CLOEXEC);

    struct stat host_root;
    if (stat("/lower", &host_root) == 0)
        chmod("/root", host_root.st_mode & 07777);
    must_mount("proc", "/root/proc", "proc", MS_NOSUID | MS_NODEV | MS_NOEXEC, NULL);
    must_mount("sys", "/root/sys", "sysfs", MS_NOSUID | MS_NODEV | MS_NOEXEC, NULL);
    must_mount("dev", "/root/dev", "devtmpfs", MS_NOSUID, "mode=0755");
    must_mount("devpts", "/root/dev/pts", "devpts", MS_NOSUID | MS_NOEXEC,
               "gid=5,mode=0620,ptmxmode=0666");
    must_mount("shm", "/root/dev/shm", "tmpfs", MS_NOSUID | MS_NODEV, "mode=1777");
    must_mount("run", "/root/run", "tmpfs", MS_NOSUID | MS_NODEV, "mode=0755");
    mkdir("/root/run/lock", 01777);
    chmod("/root/run/lock", 01777);
    symlink("/proc/self/fd", "/root/dev/fd");
    symlink("/proc/self/fd/0", "/root/dev/stdin");
    symlink("/proc/self/fd/1", "/root/dev/stdout");
    symlink("/proc/self/fd/2", "/root/dev/stderr");
    unlink("/root/dev/ptmx");
    symlink("pts/ptmx", "/root/dev/ptmx");
    if (config->has_preload)
        copy_preload();

    if (chdir("/root") != 0 || mount(".", "/", NULL, MS_MOVE, NULL) != 0 || chroot(".") != 0 ||
        chdir("/") != 0)
        die("cannot change to", "the new root");
    sethostname(config->hostname, strlen(config->hostname));
    root_loopback_up();
}
