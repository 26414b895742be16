/* SPDX-License-Identifier: MIT OR Apache-2.0
 *
 * A long run of three phases of equal time, each with another fault: a column of a matrix whose rows crowd on few sets,
 * two threads that write to one line, and stacks of counters 4 KiB apart. --cured runs the same without the faults. */
#include "subject.h"

enum { LINE = 64, ROWS = 512, ROW_BYTES = 4096, COUNTERS = 64, STRIDE = 4096, SLICE = 1000 };

static _Alignas(STRIDE) char matrix[ROWS * (ROW_BYTES + LINE)];
static _Alignas(4 * LINE) volatile char shared_words[4 * LINE];
static _Alignas(STRIDE) char counters[COUNTERS * (STRIDE + LINE)];
static uint64_t cured, phase_ns;
static int over;

static __attribute__((noinline)) uint64_t add_column(uint64_t column, uint64_t row_bytes) {
    uint64_t sum = 0;
    for (uint64_t row = 0; row < ROWS; row++)
        sum += *(volatile uint64_t *)(matrix + row * row_bytes + column % (ROW_BYTES / 8) * 8);
    return sum;
}

static __attribute__((noinline)) void count_all(uint64_t stride) {
    for (uint64_t counter = 0; counter < COUNTERS; counter++)
        *(volatile uint64_t *)(counters + counter * stride) += 1;
}

static __attribute__((noinline)) void write_word(uint64_t word, uint64_t times) {
    volatile uint64_t *own = (volatile uint64_t *)(shared_words + word * (cured ? 2 * LINE : 8));
    for (uint64_t i = 0; i < times; i++)
        *own += 1;
}

static void *write_words(void *word) {
    subject_pin("three-phases", (unsigned)(uintptr_t)word);
    while (!__atomic_load_n(&over, __ATOMIC_RELAXED))
        write_word((uintptr_t)word, SLICE);
    return NULL;
}

static uint64_t columns(void) {
    uint64_t sum = 0, column = 0, row_bytes = ROW_BYTES + (cured ? LINE : 0);
    for (double end = subject_now_ns() + (double)phase_ns; subject_now_ns() < end;)
        for (uint64_t i = 0; i < SLICE / 10; i++)
            sum += add_column(column++, row_bytes);
    return sum;
}

static void words(void) {
    pthread_t threads[2];
    for (uintptr_t i = 0; i < 2; i++)
        if (pthread_create(&threads[i], NULL, write_words, (void *)i) != 0)
            subject_fail("three-phases", "cannot start a thread");
    for (double end = subject_now_ns() + (double)phase_ns; subject_now_ns() < end;)
        nanosleep(&(struct timespec){0, 10000000}, NULL);
    __atomic_store_n(&over, 1, __ATOMIC_RELAXED);
    for (unsigned i = 0; i < 2; i++)
        pthread_join(threads[i], NULL);
}

static void stacks(void) {
    uint64_t stride = STRIDE + (cured ? LINE : 0);
    for (double end = subject_now_ns() + (double)phase_ns; subject_now_ns() < end;)
        for (uint64_t i = 0; i < SLICE; i++)
            count_all(stride);
}

int main(int argc, char **argv) {
    uint64_t seconds = 20;
    const struct subject_option options[] = {
        {"seconds", "of each phase", &seconds, 0},
        {"cured", "without the faults", &cured, 1},
        {0},
    };
    subject_options(argc, argv, "Three phases, each with another fault of memory.", options);
    phase_ns = seconds * 1000000000;
    /* Pages that are only read are one page of zeros. */
    memset(matrix, 1, sizeof matrix);
    uint64_t sum = columns();
    words();
    stacks();
    printf("three-phases: seconds=%llu cured=%llu sum=%llu\n", (unsigned long long)seconds, (unsigned long long)cured,
           (unsigned long long)sum);
    return 0;
}
