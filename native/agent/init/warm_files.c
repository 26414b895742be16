/* SPDX-License-Identifier: MIT OR Apache-2.0
 *
 * Reads what the command will surely read, ahead of the window, as it would be in the memory of a host in use: its
 * program with the interpreters of scripts, the libraries that the dynamic linker would load, the files that its
 * arguments name, its standard input. Their pages and names are then in the guest's caches of files.
 */
#define _GNU_SOURCE
#include "agent.h"

#include <elf.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

/* A chunk is what the kernel reads ahead at most for one call. */
enum { CHUNK = 128 << 10, MOST_FILES = 1024, MOST_INTERPRETERS = 4 };

/* Shared with the agent: it is read even when the child was cut short. */
struct progress {
    uint64_t files, bytes;
    bool whole;
};
static struct progress *progress;

static bool seen_before(const struct stat *status)
{
    static struct {
        dev_t device;
        ino_t inode;
    } seen[MOST_FILES];
    for (uint64_t i = 0; i < progress->files; i++)
        if (seen[i].device == status->st_dev && seen[i].inode == status->st_ino)
            return true;
    if (progress->files == MOST_FILES)
        return true;
    seen[progress->files].device = status->st_dev;
    seen[progress->files++].inode = status->st_ino;
    return false;
}

/* A descriptor of a regular file that was not read yet, read into the page cache; or -1. */
static int read_ahead(const char *path)
{
    struct stat status;
    char byte;
    int file = open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC | O_NOCTTY);
    if (file < 0)
        return -1;
    if (fstat(file, &status) != 0 || !S_ISREG(status.st_mode) || seen_before(&status)) {
        close(file);
        return -1;
    }
    for (off_t at = 0; at < status.st_size; at += CHUNK) {
        off_t length = status.st_size - at < CHUNK ? status.st_size - at : CHUNK;
        readahead(file, at, (size_t)length);
        /* Waits for the chunk, so that no more is under way than one. */
        if (pread(file, &byte, 1, at + length - 1) != 1)
            break;
        progress->bytes += (uint64_t)length;
    }
    return file;
}

/* Finds the dynamic linker that a program for this machine requests. */
static bool linker_of(int file, char *path, size_t size)
{
    Elf64_Ehdr head;
    Elf64_Phdr segment;
    if (pread(file, &head, sizeof(head), 0) != sizeof(head) || memcmp(head.e_ident, ELFMAG, SELFMAG) ||
        head.e_ident[EI_CLASS] != ELFCLASS64 || head.e_phentsize != sizeof(segment))
        return false;
    for (int i = 0; i < head.e_phnum; i++) {
        off_t at = (off_t)(head.e_phoff + (uint64_t)i * sizeof(segment));
        if (pread(file, &segment, sizeof(segment), at) != sizeof(segment))
            return false;
        if (segment.p_type != PT_INTERP)
            continue;
        if (segment.p_filesz == 0 || segment.p_filesz > size ||
            pread(file, path, segment.p_filesz, (off_t)segment.p_offset) != (ssize_t)segment.p_filesz)
            return false;
        path[segment.p_filesz - 1] = 0;
        return true;
    }
    return false;
}

/* The linker's own list: it follows the environment, the program's search path and its cache, and starts nothing. */
static void read_libraries(const struct config *config, const char *linker, const char *program)
{
    int ends[2];
    char line[2 * PATH_MAX];
    char *const arguments[] = {(char *)linker, "--list", (char *)program, NULL};
    if (pipe2(ends, O_CLOEXEC))
        return;
    pid_t child = fork();
    if (child == 0) {
        dup2(ends[1], 1);
        dup2(open("/dev/null", O_WRONLY | O_CLOEXEC), 2);
        execve(linker, arguments, config->envp);
        _exit(127);
    }
    close(ends[1]);
    FILE *list = fdopen(ends[0], "r");
    while (list && fgets(line, sizeof(line), list)) {
        char *path = strchr(line, '/'), *end = path ? strstr(path, " (0x") : NULL;
        if (!end)
            continue;
        *end = 0;
        close(read_ahead(path));
    }
    if (list)
        fclose(list);
    if (child > 0)
        waitpid(child, NULL, 0);
}

/* Finds the interpreter that `#!` names, as the kernel reads it, or for env(1) the program that it would look for. */
static bool script_of(const struct config *config, int file, char *interpreter, size_t size)
{
    char line[PATH_MAX] = {0}, *rest = line + 2;
    if (pread(file, line, sizeof(line) - 1, 0) < 3 || memcmp(line, "#!", 2))
        return false;
    line[strcspn(line, "\n")] = 0;
    const char *first = strtok_r(rest, " \t", &rest), *second = strtok_r(rest, " \t", &rest);
    if (!first)
        return false;
    const char *base = strrchr(first, '/');
    if (base && !strcmp(base, "/env") && second && *second != '-' && !strchr(second, '=')) {
        close(read_ahead(first));
        return command_find(config, second, interpreter, size) == 0;
    }
    snprintf(interpreter, size, "%s", first);
    return true;
}

/* A file, and if it is a program, what it is started with. */
static void read_with_libraries(const struct config *config, const char *path)
{
    char program[PATH_MAX], next[PATH_MAX];
    snprintf(program, sizeof(program), "%s", path);
    for (int turn = 0; turn < MOST_INTERPRETERS; turn++) {
        int file = read_ahead(program);
        if (file < 0)
            return;
        bool dynamic = linker_of(file, next, sizeof(next));
        bool script = !dynamic && script_of(config, file, next, sizeof(next));
        close(file);
        if (dynamic) {
            close(read_ahead(next));
            read_libraries(config, next, program);
        }
        if (!script)
            return;
        memcpy(program, next, sizeof(program));
    }
}

static void read_all(const struct config *config)
{
    char path[PATH_MAX];
    if (command_find(config, config->argv[0], path, sizeof(path)) == 0)
        read_with_libraries(config, path);
    for (char **argument = config->argv + 1; *argument; argument++) {
        read_with_libraries(config, *argument);
        const char *value = strchr(*argument, '=');
        if (value && value[1])
            read_with_libraries(config, value + 1);
    }
    if (config->streams[0].kind == STREAM_FILE)
        close(read_ahead(config->streams[0].path));
}

void warm_files(const struct config *config)
{
    progress = mmap(NULL, sizeof(*progress), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (progress == MAP_FAILED)
        die("no memory for", "what is read ahead");
    pid_t child = fork();
    if (child == 0) {
        setpgid(0, 0);
        if (command_settle(config) == 0)
            read_all(config);
        progress->whole = true;
        _exit(0);
    }
    control_await(child, "enough files");
    report_line("warmed files=%llu bytes=%llu whole=%d", (unsigned long long)progress->files,
        (unsigned long long)progress->bytes, progress->whole);
    munmap(progress, sizeof(*progress));
}
