/* SPDX-License-Identifier: MIT OR Apache-2.0
 *
 * Page-aligned buffers, each from mmap, added up element by element in lock-step: as lock-step, but at addresses that
 * mmap promises, so that nothing outside the program may move them. */
#include "subject.h"

#include <sys/mman.h>

enum { MOST_BUFFERS = 1024 };

static volatile uint64_t *buffer[MOST_BUFFERS];

static __attribute__((noinline)) uint64_t add_up(uint64_t buffers, uint64_t elements) {
    uint64_t sum = 0;
    for (uint64_t i = 0; i < elements; i++)
        for (uint64_t b = 0; b < buffers; b++)
            sum += buffer[b][i];
    return sum;
}

int main(int argc, char **argv) {
    uint64_t buffers = 64, rounds = 10, elements = 1 << 13;
    const struct subject_option options[] = {
        {"buffers", "from mmap", &buffers, 0},
        {"elements", "of 8 bytes a buffer", &elements, 0},
        {"rounds", "times that all of them are added up", &rounds, 0},
        {0},
    };
    subject_options(argc, argv, "Adds up buffers from mmap in lock-step; all begin at the start of a page.", options);
    if (buffers < 1 || buffers > MOST_BUFFERS || rounds < 1 || elements < 1)
        subject_fail(argv[0], "--buffers is 1 to 1024, --rounds and --elements at least 1");
    uint64_t sum = 0, expected = 0;
    for (uint64_t b = 0; b < buffers; b++) {
        buffer[b] = mmap(NULL, elements * sizeof **buffer, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        if (buffer[b] == MAP_FAILED)
            subject_fail(argv[0], "not enough memory for that size");
        for (uint64_t i = 0; i < elements; i++)
            expected += buffer[b][i] = b + i;
    }
    double from = subject_now_ns();
    for (uint64_t round = 0; round < rounds; round++)
        sum += add_up(buffers, elements);
    double ns = (subject_now_ns() - from) / (double)(rounds * elements * buffers);
    printf("mmap-buffers: buffers %llu, elements %llu, ns_per_element %.3f\n", (unsigned long long)buffers,
           (unsigned long long)elements, ns);
    return sum != expected * rounds;
}
