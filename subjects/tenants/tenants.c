/* SPDX-License-Identifier: MIT OR Apache-2.0
 *
 * Two pinned threads at work on what lies on one cache line, in one of several shapes. False sharing: --blocks (two heap
 * blocks), --flag (one thread reads a flag beside the
 * other's counter, both on main's stack), --fields (two fields of one object). True sharing:
 * --lock (a mutex alone on its line), --counter (one atomic counter). With --padded each tenant has lines of its own: the
 * false sharing is gone, and the true sharing becomes a lock or a counter for each thread. */
#include "subject.h"
#include <stdatomic.h>

enum { LINE = 64, FLAG_READS = 4 };

struct pair {
    volatile uint64_t a, b;
};
struct padded_pair {
    _Alignas(2 * LINE) volatile uint64_t a;
    _Alignas(2 * LINE) volatile uint64_t b;
};
struct padded_lock {
    _Alignas(2 * LINE) pthread_mutex_t lock;
    _Atomic uint64_t counter;
};

static _Alignas(4 * LINE) struct pair pair;
static struct padded_pair padded_pair;
static struct padded_lock one[2];

static uint64_t times = 100000, padded, blocks, flag, fields, locks, counter;
static volatile uint64_t *tenant[2];
static pthread_barrier_t start;
static const char *program;

static void *add(void *argument) {
    unsigned me = (unsigned)(uintptr_t)argument;
    subject_pin(program, me);
    pthread_barrier_wait(&start);
    for (uint64_t i = 0; i < times; i++)
        *tenant[me] += 1;
    return NULL;
}

static void *watch(void *argument) {
    subject_pin(program, 0);
    pthread_barrier_wait(&start);
    uint64_t seen = 0;
    for (uint64_t i = 0; i < FLAG_READS * times; i++)
        seen += *tenant[0];
    *(uint64_t *)argument = seen;
    return NULL;
}

static void *take(void *argument) {
    unsigned me = (unsigned)(uintptr_t)argument;
    struct padded_lock *mine = &one[padded ? me : 0];
    subject_pin(program, me);
    pthread_barrier_wait(&start);
    for (uint64_t i = 0; i < times; i++) {
        if (locks) {
            pthread_mutex_lock(&mine->lock);
            pthread_mutex_unlock(&mine->lock);
        } else {
            atomic_fetch_add(&mine->counter, 1);
        }
    }
    return NULL;
}

/* Two blocks of 24 bytes on one line: malloc packs small blocks one behind the other. */
static void allocate(void) {
    volatile uint64_t *last = NULL;
    for (int i = 0; i < 8 && !tenant[1]; i++) {
        volatile uint64_t *next = padded ? aligned_alloc(2 * LINE, 2 * LINE) : malloc(24);
        if (!next)
            subject_fail(program, "no memory");
        if (last && (padded || (uintptr_t)last / LINE == (uintptr_t)next / LINE)) {
            tenant[0] = last;
            tenant[1] = next;
        }
        last = next;
    }
    /* Under `nearmiss apply apart` no two blocks lie on one line. */
    if (!tenant[1]) {
        tenant[0] = last;
        tenant[1] = malloc(24);
    }
    *tenant[0] = *tenant[1] = 0;
}

int main(int argc, char **argv) {
    const struct subject_option options[] = {
        {"times", "operations a thread", &times, 0},
        {"padded", "lines of its own for each tenant", &padded, 1},
        {"blocks", "two heap blocks", &blocks, 1},
        {"flag", "a flag that is read beside a counter", &flag, 1},
        {"fields", "two fields of one object", &fields, 1},
        {"lock", "a mutex alone on its line", &locks, 1},
        {"counter", "one atomic counter", &counter, 1},
        {0},
    };
    program = argv[0];
    subject_options(argc, argv, "Two threads use one line, in one of several shapes.", options);
    if (blocks + flag + fields + locks + counter != 1)
        subject_fail(program, "give one shape");
    /* On one line: 16 bytes at a multiple of 16. */
    _Alignas(16) struct pair on_stack = {0, 0};
    struct pair *crowded = flag ? &on_stack : &pair;
    tenant[0] = padded ? &padded_pair.a : &crowded->a;
    tenant[1] = padded ? &padded_pair.b : &crowded->b;
    if (blocks) {
        tenant[0] = tenant[1] = NULL;
        allocate();
    }
    pthread_barrier_init(&start, NULL, 2);
    pthread_t thread[2];
    uint64_t seen = 0;
    double begun = subject_now_ns();
    for (uintptr_t i = 0; i < 2; i++) {
        pthread_mutex_init(&one[i].lock, NULL);
        void *(*body)(void *) = locks || counter ? take : flag && i == 0 ? watch : add;
        if (pthread_create(&thread[i], NULL, body, body == watch ? (void *)&seen : (void *)i) != 0)
            subject_fail(program, "cannot start a thread");
    }
    for (unsigned i = 0; i < 2; i++)
        pthread_join(thread[i], NULL);
    double ns = subject_now_ns() - begun;
    printf("tenants: times=%llu padded=%llu sum=%llu ns_per_operation=%.2f\n", (unsigned long long)times,
           (unsigned long long)padded,
           (unsigned long long)(*tenant[0] + *tenant[1] + one[0].counter + one[1].counter), times ? ns / times : 0);
    return 0;
}
