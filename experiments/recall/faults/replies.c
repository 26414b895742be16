/* SPDX-License-Identifier: MIT OR Apache-2.0
 *
 * A worker thread of a server answers requests, eight at a time. Each reply is a block of 200 to 900 KB, and all eight
 * are freed when they are sent. The C library then gives the memory of its arena for the thread back to the kernel, and
 * the next batch faults it in again. The twin keeps a reply of the largest size for each of the eight.
 *
 * SIZE: batches.
 *
 *: half = "third"
 *: kind = "keep"
 *: names = ["new_reply", "render", "answer_batch"]
 *: reach = "outside"
 *: traced = 200
 *: measured = 200
 */
#include "../planted.h"

enum { BATCH = 8, LEAST = 200000, MOST = 900000, ROW = 100 };

static char row[ROW];
static uint64_t digest;

HOT char *new_reply(uint64_t bytes) {
    char *reply = malloc(bytes);
    if (!reply)
        planted_fail("not enough memory");
    return reply;
}

/* Rows of a table as text, each with its number and four readings. */
HOT void render(char *reply, uint64_t bytes, uint64_t request) {
    for (uint64_t at = 0; at + ROW <= bytes; at += ROW) {
        memcpy(reply + at, row, ROW);
        for (uint64_t field = 0; field < 5; field++)
            for (uint64_t digit = 8, n = (request + at) * (2 * field + 1) % 100000000; digit > 0; n /= 10)
                reply[at + 16 * field + --digit] = (char)('0' + n % 10);
    }
}

HOT uint64_t sent(const char *reply, uint64_t bytes) {
    uint64_t sum = 0;
    for (uint64_t at = 0; at + ROW <= bytes; at += ROW)
        sum = sum * 31 + (uint64_t)reply[at] + (uint64_t)reply[at + 71];
    return sum;
}

HOT void answer_batch(uint64_t first) {
    static char *kept[BATCH];
    char *reply[BATCH];
    uint64_t bytes[BATCH];
    for (uint64_t i = 0; i < BATCH; i++) {
        bytes[i] = LEAST + mix(first + i + 1) % (MOST - LEAST);
        reply[i] = kept[i] ? kept[i] : new_reply(TWINNED ? MOST : bytes[i]);
        render(reply[i], bytes[i], first + i);
    }
    for (uint64_t i = 0; i < BATCH; i++) {
        digest = mix(digest + sent(reply[i], bytes[i]));
        if (TWINNED)
            kept[i] = reply[i];
        else
            free(reply[i]);
    }
}

static void *worker(void *batches) {
    for (uint64_t batch = 0; batch < *(uint64_t *)batches; batch++)
        answer_batch(batch * BATCH);
    return NULL;
}

int main(int argc, char **argv) {
    uint64_t batches = argument(argc, argv, 1, 1 << 20), begun = now_ns();
    pthread_t thread;
    memset(row, '.', ROW);
    if (pthread_create(&thread, NULL, worker, &batches) != 0)
        planted_fail("cannot start a thread");
    pthread_join(thread, NULL);
    return report(digest, begun);
}
