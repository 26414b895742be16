/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "agent.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static char *read_whole(const char *path, size_t *length)
{
    int file = open(path, O_RDONLY | O_CLOEXEC);
    struct stat status;
    if (file < 0 || fstat(file, &status) != 0)
        die("cannot read", path);
    char *text = malloc((size_t)status.st_size + 1);
    size_t have = 0;
    while (text && have < (size_t)status.st_size) {
        ssize_t n = read(file, text + have, (size_t)status.st_size - have);
        if (n <= 0)
            die("cannot read", path);
        have += (size_t)n;
    }
    close(file);
    if (!text)
        die("no memory for", path);
    text[have] = 0;
    *length = have;
    return text;
}

static void append(char ***list, size_t *count, char *value)
{
    *list = realloc(*list, (*count + 2) * sizeof(char *));
    if (!*list)
        die("no memory for", "the command's arguments");
    (*list)[(*count)++] = value;
    (*list)[*count] = NULL;
}

static struct stream stream_parse(const char *value)
{
    struct stream stream = {.kind = STREAM_CLOSED};
    if (!strcmp(value, "null"))
        stream.kind = STREAM_NULL;
    else if (!strcmp(value, "port"))
        stream.kind = STREAM_PORT;
    else if (!strcmp(value, "tty"))
        stream.kind = STREAM_TTY;
    else if (!strcmp(value, "same"))
        stream.kind = STREAM_SAME;
    else if (!strncmp(value, "file:", 5)) {
        char *end;
        stream.kind = STREAM_FILE;
        stream.offset = strtoll(value + 5, &end, 10);
        stream.path = *end == ':' ? end + 1 : end;
    }
    return stream;
}

/* termios=iflag:oflag:cflag:lflag:cc in hexadecimal, two digits a control character. */
static void termios_parse(struct config *config, const char *value)
{
    unsigned input, output, control, local;
    int used = 0;
    if (sscanf(value, "%x:%x:%x:%x:%n", &input, &output, &control, &local, &used) != 4 || !used)
        return;
    config->termios.c_iflag = input;
    config->termios.c_oflag = output;
    config->termios.c_cflag = control;
    config->termios.c_lflag = local;
    const char *digits = value + used;
    for (size_t i = 0; i < NCCS && digits[0] && digits[1]; i++, digits += 2) {
        unsigned byte;
        if (sscanf(digits, "%2x", &byte) != 1)
            return;
        config->termios.c_cc[i] = (cc_t)byte;
    }
    config->has_termios = true;
}

static void limit_parse(struct config *config, const char *value)
{
    int resource;
    unsigned long long soft, hard;
    if (config->limit_count == MAX_LIMITS ||
        sscanf(value, "%d:%llu:%llu", &resource, &soft, &hard) != 3)
        return;
    struct limit *limit = &config->limits[config->limit_count++];
    limit->resource = resource;
    limit->value.rlim_cur = soft;
    limit->value.rlim_max = hard;
}

void config_read(struct config *config)
{
    size_t length, arguments = 0, variables = 0;
    char *text = read_whole("/nearmiss.conf", &length);
    memset(config, 0, sizeof(*config));
    config->directory = "/";
    config->hostname = "nearmiss";
    config->overlay_options = "mode=0755";
    config->rows = 24;
    config->columns = 80;
    append(&config->envp, &variables, NULL);
    variables = 0;
    for (char *entry = text; entry < text + length; entry += strlen(entry) + 1) {
        char *value = strchr(entry, '=');
        if (!value)
            continue;
        size_t name = (size_t)(value++ - entry);
#define IS(key) (name == sizeof(key) - 1 && !memcmp(entry, key, name))
        if (IS("arg"))
            append(&config->argv, &arguments, value);
        else if (IS("env"))
            append(&config->envp, &variables, value);
        else if (IS("cwd"))
            config->directory = value;
        else if (IS("hostname"))
            config->hostname = value;
        else if (IS("overlay"))
            config->overlay_options = value;
        else if (IS("uid"))
            config->uid = (uid_t)strtoul(value, NULL, 10);
        else if (IS("gid"))
            config->gid = (gid_t)strtoul(value, NULL, 10);
        else if (IS("group") && config->group_count < MAX_GROUPS)
            config->groups[config->group_count++] = (gid_t)strtoul(value, NULL, 10);
        else if (IS("umask"))
            config->umask = (mode_t)strtoul(value, NULL, 8);
        else if (IS("rlimit"))
            limit_parse(config, value);
        else if (IS("ignored"))
            config->ignored_signals = strtoull(value, NULL, 16);
        else if (IS("stdin"))
            config->streams[0] = stream_parse(value);
        else if (IS("stdout"))
            config->streams[1] = stream_parse(value);
        else if (IS("stderr"))
            config->streams[2] = stream_parse(value);
        else if (IS("window"))
            sscanf(value, "%hu:%hu:%hu:%hu", &config->rows, &config->columns, &config->x_pixels,
                   &config->y_pixels);
        else if (IS("termios"))
            termios_parse(config, value);
        else if (IS("symbols"))
            config->send_symbols = *value == '1';
        else if (IS("warm"))
            config->warm = (enum warm)strtoul(value, NULL, 10);
        else if (IS("keep"))
            config->send_overlay = *value == '1';
        else if (IS("preload"))
            config->has_preload = *value == '1';
#undef IS
    }
    if (!arguments)
        die("no command in", "/nearmiss.conf");
}
