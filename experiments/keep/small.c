/* SPDX-License-Identifier: MIT OR Apache-2.0
 *
 * Does not gain: many small blocks come and go, but the population stays as large as it is. */
#include "work.h"

enum { POPULATION = 5000, LEAST = 16, SIZES = 240 };

struct session {
    uint64_t key;
    char text[];
};

static struct session *created(uint64_t key)
{
    size_t bytes = LEAST + mix(key) % SIZES;
    struct session *session = (struct session *)allocated(malloc(sizeof *session + bytes));
    session->key = key;
    memset(session->text, (int)(key & 127), bytes);
    return session;
}

int main(int argc, char **argv)
{
    size_t changes = amount_of_work(argc, argv, 1200000);
    static struct session *sessions[POPULATION];
    uint64_t checksum = 0;
    for (size_t number = 0; number < POPULATION; number++)
        sessions[number] = created(number);
    for (size_t number = POPULATION; number < POPULATION + changes; number++) {
        size_t place = mix(number) % POPULATION;
        checksum = mix(checksum + sessions[place]->key + (uint64_t)sessions[place]->text[LEAST - 1]);
        free(sessions[place]);
        sessions[place] = created(number);
    }
    for (size_t number = 0; number < POPULATION; number++)
        free(sessions[number]);
    return print_checksum(checksum);
}
