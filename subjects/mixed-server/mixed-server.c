/* SPDX-License-Identifier: MIT OR Apache-2.0
 *
 * An application server with a process for each client, as ServerBench has one: a transaction computes on the process's
 * own table, reads and writes the client's own file (in order, and at random), and sends and receives over loopback.
 * With --ask it is the load: so many clients with a connection each. With --get it requests /index.html from an HTTP
 * server, over connections that stay. The server ends by a signal. */
#include "subject.h"

#include <arpa/inet.h>
#include <netinet/tcp.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

static uint64_t port = 8082, processes = 16, transactions = 8, table_bytes = 192 << 10, file_bytes = 256 << 10;
static uint64_t reply = 8192, load, get;
static const char *program;
/* Processes of the server report on the first that they are ready, and wait for the end of the second. */
static int ready[2], begin[2];
static char buffer[64 << 10];

static struct sockaddr_in address(void) {
    return (struct sockaddr_in){
        .sin_family = AF_INET, .sin_port = htons((uint16_t)port), .sin_addr = {htonl(INADDR_LOOPBACK)}};
}

/* Moves so many bytes in one direction; 0: the other side is done. */
static int move(int connection, size_t bytes, ssize_t (*call)(int, void *, size_t)) {
    while (bytes > 0) {
        ssize_t n = call(connection, buffer, bytes < sizeof buffer ? bytes : sizeof buffer);
        if (n <= 0)
            return 0;
        bytes -= (size_t)n;
    }
    return 1;
}

static ssize_t give(int connection, void *from, size_t bytes) {
    return send(connection, from, bytes, MSG_NOSIGNAL);
}

static ssize_t take(int connection, void *to, size_t bytes) {
    return read(connection, to, bytes);
}

/* Steps on the process's own table, each at a place that the step before names. */
static uint64_t compute(uint64_t *table, uint64_t *state) {
    uint64_t sum = 0, entries = table_bytes / sizeof *table;
    for (uint64_t step = 0; step < 20000; step++) {
        uint64_t at = subject_random(state) % entries;
        sum += table[at] * 31 + (sum >> 7);
        if (step % 4 == 0)
            table[at] = sum;
    }
    return sum;
}

static void use_file(int file, uint64_t *state) {
    const uint64_t record = 4096, records = file_bytes / record;
    for (uint64_t i = 0; i < 8; i++) {
        off_t at = (off_t)(subject_random(state) % records * record);
        if (pread(file, buffer, record, at) < 0 || (i % 4 == 0 && pwrite(file, buffer, record, at) < 0))
            subject_fail(program, "cannot use its file");
    }
    off_t from = (off_t)(subject_random(state) % (records / 8) * record);
    for (uint64_t i = 0; i < 8; i++)
        if (pread(file, buffer, record, from + (off_t)(i * record)) < 0)
            subject_fail(program, "cannot read its file");
}

static void serve(int listener) {
    uint64_t *table = subject_memory(program, 4096, table_bytes), state = 1;
    int file = memfd_create("mixed-server", 0), connection;
    for (uint64_t at = 0; at < file_bytes; at += sizeof buffer)
        if (file < 0 || write(file, buffer, sizeof buffer) < 0)
            subject_fail(program, "cannot write its file");
    close(begin[1]);
    if (write(ready[1], buffer, 1) != 1 || read(begin[0], buffer, 1) != 0)
        subject_fail(program, "the first process is gone");
    while ((connection = accept(listener, NULL, NULL)) >= 0) {
        do {
            if (!move(connection, 64, take))
                break;
            table[0] += compute(table, &state);
            use_file(file, &state);
        } while (move(connection, reply, give) && move(connection, reply / 4, take));
        close(connection);
    }
}

static int connected(void) {
    struct sockaddr_in to = address();
    int connection = socket(AF_INET, SOCK_STREAM, 0), on = 1;
    if (connection < 0 || connect(connection, (struct sockaddr *)&to, sizeof to) != 0)
        subject_fail(program, "nobody answers");
    setsockopt(connection, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    return connection;
}

static void request_transactions(void) {
    int connection = connected();
    for (uint64_t i = 0; i < transactions; i++)
        if (!move(connection, 64, give) || !move(connection, reply, take) || !move(connection, reply / 4, give))
            subject_fail(program, "the server is gone");
}

/* A response is all there when its announced length is. */
static void get_pages(void) {
    const char *request = "GET /index.html HTTP/1.1\r\nHost: localhost\r\n\r\n";
    int connection = connected();
    for (uint64_t i = 0; i < transactions; i++) {
        if (give(connection, (void *)request, strlen(request)) < 0)
            subject_fail(program, "the server is gone");
        size_t have = 0, whole = 0;
        while (!whole || have < whole) {
            ssize_t n = read(connection, buffer + have, sizeof buffer - 1 - have);
            if (n <= 0)
                subject_fail(program, "the server is gone");
            have += (size_t)n;
            buffer[have] = 0;
            char *end = strstr(buffer, "\r\n\r\n"), *length = strstr(buffer, "Content-Length: ");
            if (end && length)
                whole = (size_t)(end + 4 - buffer) + strtoull(length + 16, NULL, 10);
        }
    }
}

/* Listens when all of its processes are there, so that a program that waits for that finds them at rest. */
static void listens(int listener) {
    for (uint64_t i = 0; i < processes; i++)
        if (read(ready[0], buffer, 1) != 1)
            subject_fail(program, "a process is gone");
    if (listen(listener, 64) != 0)
        subject_fail(program, "cannot listen");
    close(begin[1]);
}

static void in_processes(void (*client)(void), int listener) {
    for (uint64_t i = 0; i < processes; i++) {
        pid_t child = fork();
        if (child < 0)
            subject_fail(program, "cannot start a process");
        if (child == 0) {
            prctl(PR_SET_PDEATHSIG, SIGKILL);
            if (client)
                client();
            else
                serve(listener);
            exit(0);
        }
    }
    if (!client)
        listens(listener);
    int status, failed = 0;
    while (wait(&status) > 0)
        failed |= status;
    exit(failed ? 1 : 0);
}

int main(int argc, char **argv) {
    const struct subject_option options[] = {
        {"port", "port to listen on, or to connect to", &port, 0},
        {"processes", "processes of the server, or clients", &processes, 0},
        {"transactions", "transactions or requests of a client", &transactions, 0},
        {"table", "bytes of a process's own table", &table_bytes, 0},
        {"file", "bytes of a client's own file", &file_bytes, 0},
        {"reply", "bytes of a reply", &reply, 0},
        {"ask", "be the load", &load, 1},
        {"get", "be a load of HTTP requests", &get, 1},
        {0},
    };
    subject_options(argc, argv, "A server of processes that compute, use files and the network.", options);
    program = argv[0];
    if (!processes || table_bytes < 4096 || file_bytes < sizeof buffer || file_bytes % sizeof buffer || port > 65535)
        subject_fail(program, "--processes is 1 at least, --table 4K at least, --file a multiple of 64K");
    if (load || get)
        in_processes(get ? get_pages : request_transactions, -1);
    struct sockaddr_in at = address();
    int listener = socket(AF_INET, SOCK_STREAM, 0), on = 1;
    setsockopt(listener, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
    if (bind(listener, (struct sockaddr *)&at, sizeof at) != 0 || pipe(ready) != 0 || pipe(begin) != 0)
        subject_fail(program, "cannot have its port");
    in_processes(NULL, listener);
    return 0;
}
