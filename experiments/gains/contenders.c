/* SPDX-License-Identifier: MIT OR Apache-2.0
 *
 * Threads, or processes, each use an element of one array; neighbouring elements lie on one line. Those of the twin lie on
 * lines of their own.
 *
 * WAY PLACE BYTES THREADS TURNS [WORK]: what each does with its element (stores, adds, atomics, word: atomics to one word
 * of all; mixed: the odd ones store to theirs, the even ones load it; one: the first stores, all others load theirs), where
 * the array is (static, heap, odd: a block that begins a quarter of a line late; stack, shared: processes), bytes of an
 * element, and multiplications between two uses. */
#include "../recall/planted.h"
#include <sys/wait.h>
#include <unistd.h>

enum { MOST = 8, APART = 4 * LINE };
enum way { STORES, ADDS, ATOMICS, WORD, MIXED, ONE, WAYS };
static const char *const NAMES[WAYS] = {"stores", "adds", "atomics", "word", "mixed", "one"};

static alignas(APART) char elements[MOST * APART];
static char *base;
static uint64_t bytes_apart, work, last_word;
static unsigned count;
static enum way way;

static volatile uint64_t *element(unsigned self) {
    return (volatile uint64_t *)(base + self * bytes_apart);
}

static inline uint64_t worked(uint64_t x) {
    for (uint64_t turn = 0; turn <= work; turn++)
        x = x * 6364136223846793005u + 1442695040888963407u;
    return x;
}

/* The first word of an element and, where the array begins late, its last one in turn. */
HOT void store(volatile uint64_t *own, uint64_t turns) {
    for (uint64_t turn = 0, x = 0; turn < turns; turn++)
        own[turn % 2 * last_word] = x = worked(x);
}

HOT void add(volatile uint64_t *own, uint64_t turns) {
    for (uint64_t turn = 0, x = 0; turn < turns; turn++) {
        x = worked(x);
        own[turn % 2 * last_word] += x >> 60;
    }
}

HOT void add_atomically(volatile uint64_t *own, uint64_t turns) {
    for (uint64_t turn = 0, x = 0; turn < turns; turn++) {
        x = worked(x);
        __atomic_fetch_add(own, x >> 60, __ATOMIC_RELAXED);
    }
}

HOT void load(volatile uint64_t *own, uint64_t turns) {
    volatile uint64_t kept = 0;
    for (uint64_t turn = 0, x = 0; turn < turns; turn++) {
        x = worked(x) + *own;
        if (turn == turns - 1)
            kept = x;
    }
    (void)kept;
}

static void use(unsigned self, uint64_t turns) {
    volatile uint64_t *own = element(self);
    switch (way) {
    case STORES: store(own, turns); break;
    case ADDS: add(own, turns); break;
    case ATOMICS: add_atomically(own, turns); break;
#ifdef TWIN
    case WORD: add_atomically(own, turns); break;
#else
    case WORD: add_atomically(element(0), turns); break;
#endif
    case MIXED: self % 2 ? store(own, turns) : load(own, turns); break;
    case ONE: self ? load(own, turns) : store(own, turns); break;
    case WAYS: break;
    }
}

static void by_processes(uint64_t turns) {
    unsigned *ready = mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    for (unsigned self = 0; self < count; self++)
        if (fork() == 0) {
            pin(self);
            // They begin together, as threads behind a barrier do.
            __atomic_fetch_add(ready, 1, __ATOMIC_SEQ_CST);
            while (__atomic_load_n(ready, __ATOMIC_SEQ_CST) < count)
                sched_yield();
            use(self, turns);
            _exit(0);
        }
    while (wait(NULL) > 0)
        continue;
}

int main(int argc, char **argv) {
    uint64_t turns = argument(argc, argv, 5, 1 << 30), begun = now_ns(), digest = 0;
    char frame[MOST * APART + APART];
    const char *place = argc > 2 ? argv[2] : "static";
    while (way < ONE && argc > 1 && strcmp(argv[1], NAMES[way]) != 0)
        way++;
    bytes_apart = argument(argc, argv, 3, APART);
    count = (unsigned)argument(argc, argv, 4, MOST);
    work = argc > 6 ? argument(argc, argv, 6, 1000) : 0;
    base = elements;
    if (strcmp(place, "heap") == 0 || strcmp(place, "odd") == 0)
        base = aligned_alloc(APART, sizeof elements);
    if (strcmp(place, "stack") == 0)
        base = frame + (APART - (uintptr_t)frame % APART) % APART;
    if (strcmp(place, "shared") == 0)
        base = mmap(NULL, sizeof elements, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    memset(base, 0, sizeof elements);
    if (strcmp(place, "odd") == 0) {
        last_word = bytes_apart / sizeof(uint64_t) - 1;
        base += TWINNED ? 0 : LINE / 4;
    }
#ifdef TWIN
    bytes_apart = APART;
#endif
    if (strcmp(place, "shared") == 0)
        by_processes(turns);
    else
        on_threads(count, use, turns);
    for (unsigned self = 0; self < count && way < MIXED; self++)
        digest += *element(self) + (last_word ? element(self)[last_word] : 0);
    return report(digest, begun);
}
