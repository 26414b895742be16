/* SPDX-License-Identifier: MIT OR Apache-2.0
 *
 * Threads that exchange messages: each allocates some and fills them, and its partner on another node reads them several
 * times and frees them. An allocator that gives a block back to the thread that first had it hands out memory that was
 * last used on the other node. With --own each thread reads and frees its own messages: the same calls, no exchange. */
#include "subject.h"

static uint64_t threads = 4, blocks = 1024, bytes = 512, rounds = 4, reads = 5, own;
static unsigned char **sent[64];
static uint64_t sums[64];
static pthread_barrier_t turn;

static uint64_t read_all(unsigned char **messages) {
    uint64_t sum = 0;
    for (uint64_t pass = 0; pass < reads; pass++)
        for (uint64_t i = 0; i < blocks; i++)
            for (uint64_t at = 0; at < bytes; at += 32)
                sum += messages[i][at];
    return sum;
}

static void *work(void *given) {
    const uint64_t me = (uint64_t)(uintptr_t)given, partner = own ? me : (me + threads / 2) % threads;
    subject_pin("messages", (unsigned)me);
    for (uint64_t round = 0; round < rounds; round++) {
        for (uint64_t i = 0; i < blocks; i++) {
            sent[me][i] = malloc(bytes);
            if (!sent[me][i])
                subject_fail("messages", "no memory");
            memset(sent[me][i], (int)(round + me), bytes);
        }
        pthread_barrier_wait(&turn);
        sums[me] += read_all(sent[partner]);
        for (uint64_t i = 0; i < blocks; i++)
            free(sent[partner][i]);
        pthread_barrier_wait(&turn);
    }
    return NULL;
}

int main(int argc, char **argv) {
    const struct subject_option options[] = {
        {"threads", "threads, each on a CPU of its own; an even number", &threads, 0},
        {"blocks", "messages of a thread in a round", &blocks, 0},
        {"bytes", "bytes of a message", &bytes, 0},
        {"rounds", "rounds of messages", &rounds, 0},
        {"reads", "how often a message is read", &reads, 0},
        {"own", "each thread reads and frees its own messages", &own, 1},
        {0},
    };
    subject_options(argc, argv, "Threads hand messages to threads of another node, which free them.", options);
    if (!threads || threads > 64 || threads % 2 || !blocks || !bytes)
        subject_fail(argv[0], "--threads is 2 to 64 and even, --blocks and --bytes are 1 at least");
    pthread_barrier_init(&turn, NULL, (unsigned)threads);
    for (uint64_t i = 0; i < threads; i++)
        sent[i] = subject_memory(argv[0], 4096, blocks * sizeof *sent[i]);
    pthread_t thread[64];
    double begun = subject_now_ns();
    for (uint64_t i = 0; i < threads; i++)
        if (pthread_create(&thread[i], NULL, work, (void *)(uintptr_t)i) != 0)
            subject_fail(argv[0], "cannot start a thread");
    uint64_t sum = 0;
    for (uint64_t i = 0; i < threads; i++) {
        pthread_join(thread[i], NULL);
        sum += sums[i];
    }
    double ns = subject_now_ns() - begun;
    printf("messages: threads=%llu blocks=%llu bytes=%llu rounds=%llu reads=%llu own=%llu sum=%llu ns_per_message=%.2f\n",
           (unsigned long long)threads, (unsigned long long)blocks, (unsigned long long)bytes,
           (unsigned long long)rounds, (unsigned long long)reads, (unsigned long long)own, (unsigned long long)sum,
           ns / (double)(threads * blocks * (rounds ? rounds : 1)));
    return 0;
}
