/* SPDX-License-Identifier: MIT OR Apache-2.0
 *
 * The guest's init: mounts the host's root under a throw-away overlay, runs one command in it as it would have run
 * outside, and reports to the host what happens.
 */
#ifndef NEARMISS_AGENT_H
#define NEARMISS_AGENT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/resource.h>
#include <sys/types.h>
#include <termios.h>

#define ARRAY_LENGTH(a) (sizeof(a) / sizeof((a)[0]))

/* virtio-serial port numbers; the host creates them in this order. */
enum { PORT_CONTROL = 1, PORT_INPUT = 2, PORT_OUTPUT = 3, PORT_ERROR = 4 };

/* How one of the command's standard descriptors is made. */
enum stream_kind { STREAM_CLOSED, STREAM_NULL, STREAM_PORT, STREAM_TTY, STREAM_FILE, STREAM_SAME };

struct stream {
    enum stream_kind kind;
    const char *path; /* STREAM_FILE: a file of the guest's root, opened to read; of an output, made anew */
    off_t offset;     /* STREAM_FILE: where reading begins */
};

struct limit {
    int resource;
    struct rlimit value;
};

#define MAX_GROUPS 1024
#define MAX_LIMITS 32

/* Warm-up ahead of the window; each includes those before it. */
enum warm { WARM_NOTHING, WARM_FILES, WARM_RUN };

/* The file /nearmiss.conf of the initramfs: key=value, each ended by a NUL. */
struct config {
    char **argv;
    char **envp;
    const char *directory;
    const char *hostname;
    const char *overlay_options; /* of the tmpfs under the overlay */
    uid_t uid;
    gid_t gid;
    gid_t groups[MAX_GROUPS];
    size_t group_count;
    mode_t umask;
    struct limit limits[MAX_LIMITS];
    size_t limit_count;
    uint64_t ignored_signals; /* bit n-1: signal n */
    struct stream streams[3];
    unsigned short rows, columns, x_pixels, y_pixels;
    bool has_termios;
    struct termios termios;
    bool send_symbols;
    enum warm warm;
    bool send_overlay;
    bool has_preload;
};

void config_read(struct config *config);

/* control.c: frames to and from the host. A frame is a 32-bit little-endian payload length, a byte with its kind, and
 * the payload. */
enum frame { FRAME_TEXT = 1, FRAME_KALLSYMS = 2, FRAME_BTF = 3, FRAME_TAR = 4 };

void control_open(void);
int control_descriptor(void);
void control_send(enum frame kind, const void *payload, size_t length);
void report_line(const char *format, ...) __attribute__((format(printf, 1, 2)));
/* Reports to the host what went wrong and never returns: without the host's order nothing can be done. */
void die(const char *what, const char *which) __attribute__((noreturn));
/* The next order, NUL-ended and valid until the next call, or NULL when none is complete. */
const char *control_next(void);
const char *control_wait(void);
/* Writes the bytes that follow the last order to a file. */
void control_receive(int file, size_t length);
/* Waits until this child has ended, or until this order comes and its process group is ended. */
void control_await(pid_t child, const char *enough);
int port_open(int number);

/* saved.c */
/* Prepares all that is alike in every run, and waits while the host saves the guest; returns in a restored one, when the
 * host has sent what this run differs by. */
void saved_wait(void);

/* root.c */
/* Loads the drivers of the ports and of the file server, where the kernel has none built in. */
void root_load_drivers(void);
void root_load_overlay(void);
void root_prepare(const struct config *config);
/* The overlay's upper directory, from before the root was changed. */
int root_upper(void);
void root_loopback_up(void);

/* warm_files.c */
void warm_files(const struct config *config);

/* warm_run.c */
void warm_run_prepare(void);
void warm_run(const struct config *config);

/* start.c */
void start_ahead(const struct config *config);

/* facts.c: what the consumer needs to read this guest's memory. */
void facts_perf_rings_open(void);
void facts_perf_rings_report(void);
void facts_send_file(enum frame kind, const char *path);
bool facts_settle(uint64_t *waited_ms); /* waits until the guest is quiet; false: it was not */
void facts_wait_quiet(void);
long facts_oom_kills(void);
/* Sends the last line of the kernel's log with this text. */
void facts_kernel_line(const char *needle);

/* relay.c: between ports and the command's pipes or terminal. */
struct relay_totals {
    uint64_t terminal, output, error;
};
void relay_prepare(const struct config *config);
/* In the command's process: puts the three standard descriptors in place. */
void relay_enter(const struct config *config);
/* In the agent, after the fork. */
void relay_started(void);
/* Runs until the child has ended; returns its wait status. */
int relay_until_exit(pid_t child);
void relay_drain(struct relay_totals *totals);
void relay_resize(const char *order);

/* command.c */
/* 0, or why `name`, looked up as execvp does, cannot be executed. */
int command_find(const struct config *config, const char *name, char *found, size_t size);
/* Takes on the command's limits, directory and identity; 0, or the stage and errno that failed. */
int command_settle(const struct config *config);
/* Becomes the command outside the window. */
void command_become(const struct config *config) __attribute__((noreturn));
pid_t command_start(const struct config *config);
/* 0, or the stage and errno that kept the command from its start. */
int command_refused(void);

/* waits.c */
/* Reports what the command's processes wait on: lines, then `waits end`. */
void waits_report(void);

/* keep.c */
void keep_send(int directory);
/* Sends only the files in which runtimes of languages name the code that they made, /tmp/perf-PID.map. */
void keep_send_code_names(int directory);

void write_all(int descriptor, const void *data, size_t length);
bool write_file(const char *path, const char *text);

#endif
