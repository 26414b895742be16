/* SPDX-License-Identifier: MIT OR Apache-2.0
 *
 * Two threads, each with an arena of its own. A job takes six arrays of 4 MiB and frees them together, for which the
 * arena's heap shrinks. */
#include "work.h"
#include <pthread.h>

enum { THREADS = 2, ARRAYS = 6, WORDS = (4 << 20) / sizeof(uint64_t) };

struct worker {
    pthread_t thread;
    size_t first, jobs;
    uint64_t sum;
    uint64_t *arrays[ARRAYS];
};

static uint64_t job(uint64_t **arrays, uint64_t seed)
{
    uint64_t sum = 0;
    for (size_t array = 0; array < ARRAYS; array++)
        for (size_t word = 0; word < WORDS; word++)
            arrays[array][word] = seed + (array + 1) * word;
    for (size_t word = 0; word < WORDS; word++)
        for (size_t array = 0; array < ARRAYS; array++)
            sum += mix(arrays[array][word]);
    return sum;
}

static void *work(void *argument)
{
    struct worker *self = (struct worker *)argument;
    for (size_t number = self->first; number < self->jobs; number += THREADS) {
        for (size_t array = 0; array < ARRAYS; array++)
            if (!self->arrays[array])
                self->arrays[array] = (uint64_t *)allocated(malloc(WORDS * sizeof(uint64_t)));
        self->sum += job(self->arrays, number);
        for (size_t array = 0; array < ARRAYS && !KEEPS; array++) {
            free(self->arrays[array]);
            self->arrays[array] = NULL;
        }
    }
    return NULL;
}

int main(int argc, char **argv)
{
    size_t jobs = amount_of_work(argc, argv, 14);
    static struct worker workers[THREADS];
    for (size_t number = 0; number < THREADS; number++) {
        workers[number].first = number;
        workers[number].jobs = jobs;
        if (pthread_create(&workers[number].thread, NULL, work, &workers[number]))
            return 2;
    }
    uint64_t checksum = 0;
    for (size_t number = 0; number < THREADS; number++) {
        pthread_join(workers[number].thread, NULL);
        checksum += workers[number].sum;
    }
    return print_checksum(checksum);
}
