/* SPDX-License-Identifier: MIT OR Apache-2.0
 *
 * Sends the command's writes, the overlay's upper directory, as a tar archive. A file deleted from the host's root is a
 * character device 0:0 there; its name is sent apart. A directory of the host that was renamed is only a reference
 * there, so it is read from the merged view. Files with names of code are sent without a request.
 */
#define _GNU_SOURCE
#include "agent.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/xattr.h>
#include <unistd.h>

#define RECORD 512
#define BLOCK 65536
/* Bytes of such files, headers left aside; the host takes a little more. */
#define MOST_NAMES (48u << 20)

struct header {
    char name[100], mode[8], uid[8], gid[8], size[12], modified[12], checksum[8], type, link[100];
    char magic[6], version[2], user[32], group[32], major[8], minor[8], prefix[155], padding[12];
};
_Static_assert(sizeof(struct header) == RECORD, "a tar header is one record");

static unsigned char block[BLOCK];
static size_t used;

static void flush(void)
{
    if (used)
        control_send(FRAME_TAR, block, used);
    used = 0;
}

static void put(const void *bytes, size_t length)
{
    const unsigned char *from = bytes;
    while (length) {
        size_t part = length < BLOCK - used ? length : BLOCK - used;
        if (from) {
            memcpy(block + used, from, part);
            from += part;
        } else {
            memset(block + used, 0, part);
        }
        used += part;
        length -= part;
        if (used == BLOCK)
            flush();
    }
}

static void pad(uint64_t length)
{
    if (length % RECORD)
        put(NULL, RECORD - length % RECORD);
}

/* Octal where it fits, else the GNU form: binary, with the top bit set. */
static void number(char *field, size_t width, uint64_t value)
{
    if (value >> (3 * (width - 1)) == 0) {
        snprintf(field, width, "%0*llo", (int)width - 1, (unsigned long long)value);
        return;
    }
    for (size_t i = width; i-- > 0; value >>= 8)
        field[i] = (char)value;
    field[0] = (char)0x80;
}

static void put_header(const char *name, const struct stat *status, char type, uint64_t size, const char *link)
{
    struct header header = {.type = type, .magic = "ustar ", .version = " "};
    strncpy(header.name, name, sizeof(header.name));
    if (link)
        strncpy(header.link, link, sizeof(header.link));
    number(header.mode, sizeof(header.mode), status->st_mode & 07777);
    number(header.uid, sizeof(header.uid), status->st_uid);
    number(header.gid, sizeof(header.gid), status->st_gid);
    number(header.size, sizeof(header.size), size);
    number(header.modified, sizeof(header.modified), status->st_mtime > 0 ? (uint64_t)status->st_mtime : 0);
    memset(header.checksum, ' ', sizeof(header.checksum));
    unsigned sum = 0;
    for (size_t i = 0; i < RECORD; i++)
        sum += ((unsigned char *)&header)[i];
    snprintf(header.checksum, sizeof(header.checksum), "%06o", sum);
    put(&header, sizeof(header));
}

/* A name that does not fit into the header goes ahead, as an entry of its own (GNU). */
static void put_long(char type, const char *text)
{
    struct stat none = {0};
    size_t length = strlen(text) + 1;
    if (length <= 100)
        return;
    put_header("././@LongLink", &none, type, length, NULL);
    put(text, length);
    pad(length);
}

static void put_entry(const char *name, const struct stat *status, char type, uint64_t size, const char *link)
{
    if (link)
        put_long('K', link);
    put_long('L', name);
    put_header(name, status, type, size, link);
}

static void send_regular(int directory, const char *entry, const char *name, const struct stat *status)
{
    static char part[BLOCK];
    int file = openat(directory, entry, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
    if (file < 0)
        return;
    uint64_t left = (uint64_t)status->st_size;
    put_entry(name, status, '0', left, NULL);
    while (left) {
        ssize_t n = read(file, part, left < sizeof(part) ? left : sizeof(part));
        if (n <= 0)
            break;
        put(part, (size_t)n);
        left -= (uint64_t)n;
    }
    put(NULL, left); /* it has become shorter */
    pad((uint64_t)status->st_size);
    close(file);
}

static void send_directory(int directory, const char *name);

static void send_one(int directory, const char *entry, const char *name)
{
    struct stat status;
    char target[PATH_MAX];
    if (fstatat(directory, entry, &status, AT_SYMLINK_NOFOLLOW) != 0)
        return;
    if (S_ISREG(status.st_mode)) {
        send_regular(directory, entry, name, &status);
    } else if (S_ISLNK(status.st_mode)) {
        ssize_t length = readlinkat(directory, entry, target, sizeof(target) - 1);
        if (length < 0)
            return;
        target[length] = 0;
        put_entry(name, &status, '2', 0, target);
    } else if (S_ISDIR(status.st_mode)) {
        int below = openat(directory, entry, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
        if (below < 0)
            return;
        put_entry(name, &status, '5', 0, NULL);
        if (fgetxattr(below, "trusted.overlay.redirect", NULL, 0) >= 0) {
            char merged[PATH_MAX + 1];
            snprintf(merged, sizeof(merged), "/%s", name);
            close(below);
            below = open(merged, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
        }
        send_directory(below, name);
    } else if (S_ISCHR(status.st_mode) && status.st_rdev == makedev(0, 0)) {
        report_line("deleted /%s", name);
    } else {
        report_line("not-kept /%s", name);
    }
}

/* Takes the descriptor over. */
static void send_directory(int directory, const char *name)
{
    DIR *list = directory < 0 ? NULL : fdopendir(directory);
    if (!list)
        return;
    for (struct dirent *entry; (entry = readdir(list));) {
        char path[PATH_MAX];
        if (!strcmp(entry->d_name, ".") || !strcmp(entry->d_name, ".."))
            continue;
        if ((size_t)snprintf(path, sizeof(path), "%s%s%s", name, *name ? "/" : "", entry->d_name) < sizeof(path))
            send_one(directory, entry->d_name, path);
    }
    closedir(list);
}

static void finish(void)
{
    put(NULL, 2 * RECORD);
    flush();
    control_send(FRAME_TAR, "", 0);
}

void keep_send(int directory)
{
    send_directory(dup(directory), "");
    finish();
}

static bool is_code_names(const char *entry)
{
    int process, length = 0;
    return sscanf(entry, "perf-%d.map%n", &process, &length) == 1 && length && !entry[length];
}

void keep_send_code_names(int directory)
{
    uint64_t left = MOST_NAMES;
    bool any = false;
    int place = openat(directory, "tmp", O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    DIR *list = place < 0 ? NULL : fdopendir(place);
    if (!list)
        return;
    for (struct dirent *entry; (entry = readdir(list));) {
        struct stat status;
        char path[PATH_MAX];
        if (!is_code_names(entry->d_name) || fstatat(place, entry->d_name, &status, AT_SYMLINK_NOFOLLOW) != 0 ||
            !S_ISREG(status.st_mode) || (uint64_t)status.st_size > left)
            continue;
        snprintf(path, sizeof(path), "tmp/%s", entry->d_name);
        send_regular(place, entry->d_name, path, &status);
        left -= (uint64_t)status.st_size;
        any = true;
    }
    closedir(list);
    if (any)
        finish();
}
