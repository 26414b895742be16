/* SPDX-License-Identifier: MIT OR Apache-2.0
 *
 * One way: a thread allocates messages and fills them, and a thread of another node reads each once and frees it. The
 * allocator gives the writer its own memory back, where it lies near the writer; what the reader waits for was written
 * just now, on the other node. With --near both run on one node. */
#include "subject.h"

static uint64_t blocks = 2048, bytes = 512, rounds = 8, near;
static unsigned char **sent;
static uint64_t sum;
static pthread_barrier_t turn;

static void *writes(void *nothing) {
    (void)nothing;
    subject_pin("queue", 0);
    for (uint64_t round = 0; round < rounds; round++) {
        for (uint64_t i = 0; i < blocks; i++) {
            sent[i] = malloc(bytes);
            if (!sent[i])
                subject_fail("queue", "no memory");
            memset(sent[i], (int)round, bytes);
        }
        pthread_barrier_wait(&turn);
        pthread_barrier_wait(&turn);
    }
    return NULL;
}

static void *reads(void *nothing) {
    (void)nothing;
    subject_pin("queue", near ? 1 : 2);
    for (uint64_t round = 0; round < rounds; round++) {
        pthread_barrier_wait(&turn);
        for (uint64_t i = 0; i < blocks; i++) {
            for (uint64_t at = 0; at < bytes; at += 32)
                sum += sent[i][at];
            free(sent[i]);
        }
        pthread_barrier_wait(&turn);
    }
    return NULL;
}

int main(int argc, char **argv) {
    const struct subject_option options[] = {
        {"blocks", "messages in a round", &blocks, 0},
        {"bytes", "bytes of a message", &bytes, 0},
        {"rounds", "rounds of messages", &rounds, 0},
        {"near", "both threads on one node", &near, 1},
        {0},
    };
    subject_options(argc, argv, "A thread hands messages to a thread of another node, which frees them.", options);
    sent = subject_memory(argv[0], 4096, blocks * sizeof *sent);
    pthread_barrier_init(&turn, NULL, 2);
    pthread_t writer, reader;
    pthread_create(&writer, NULL, writes, NULL);
    pthread_create(&reader, NULL, reads, NULL);
    pthread_join(writer, NULL);
    pthread_join(reader, NULL);
    printf("queue: sum=%llu\n", (unsigned long long)sum);
    return 0;
}
