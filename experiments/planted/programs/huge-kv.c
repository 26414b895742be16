/* Session store: tokenises its rule file (set-up), then requests touch sessions at random; a session record
   (header + private data) has 4 KiB and one line. */
#include <stdio.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#ifndef SETUP
#define SETUP 4500000
#endif
#ifndef REQS
#define REQS 32000000
#endif
enum { SESSIONS = 25500, BUCKETS = 32768 };
struct session { uint32_t id, hits; uint64_t seen, bytes; uint32_t state, flags; unsigned char data[4160 - 32]; };
static struct session *store;
static uint32_t rules[4096];
static uint64_t setup(void)
{
    char line[64];
    uint64_t acc = 0;
    for (int i = 0; i < SETUP; i++) {
        int n = snprintf(line, sizeof line, "GET user:%d", (int)((i * 2654435761u) >> 4));
        uint32_t v = 0;
        for (int j = 9; j < n; j++) v = v * 10 + (line[j] - '0');
        rules[i & 4095] += v;
        acc += v;
    }
    return acc;
}
int main(void)
{
    uint64_t sum = setup(), x = 5;
    store = malloc(SESSIONS * sizeof *store);
    for (int i = 0; i < SESSIONS; i++) {
        struct session *s = &store[i];
        memset(s, 0, 64);
        s->id = i;
        s->data[4000] = 1;
    }
    for (int i = 0; i < REQS; i++) {
        x = x * 6364136223846793005ull + 1442695040888963407ull;
        struct session *s = &store[(x >> 33) * SESSIONS >> 31];
        s->hits++;
        s->bytes += x >> 54;
        if (s->state != (s->hits & 3)) s->state = s->hits & 3;
        sum += s->bytes + rules[x >> 40 & 4095];
        x += s->hits;
    }
    printf("%lu %u\n", sum, store[99].hits);
    return 0;
}
