/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Idle-session sweep: sessions hang in a linked list in arrival (random) order.
   The sweep needs the link and the credit only; they lie on the first and the last of its four lines. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#define NSESSION 16384
static uint64_t seed = 42;
static uint32_t rnd(void) { seed = seed * 6364136223846793005ull + 1442695040888963407ull; return seed >> 33; }

#ifndef FIXED
struct session {
    struct session *next;
    uint64_t id;
    char user[48];
    char peer[64];
    uint64_t bytes_in, bytes_out;
    uint32_t cipher, version;
    unsigned char key_material[64];
    uint32_t credit;          /* offset 216 */
    uint32_t flags;
    uint64_t opened_at;
    unsigned char tail[24];
};
_Static_assert(sizeof(struct session) == 256, "size");
static struct session *pool, *head;

__attribute__((noinline)) static void link_sessions(const uint32_t *order)
{
    struct session **tail = &head;
    for (int i = 0; i < NSESSION; i++) { *tail = &pool[order[i]]; tail = &pool[order[i]].next; }
    *tail = NULL;
}
__attribute__((noinline)) static uint64_t sweep(uint32_t grant)
{
    uint64_t total = 0;
    for (struct session *s = head; s; s = s->next) {
        if (s->credit > 900) s->credit -= 900; else s->credit += grant;
        total += s->credit;
    }
    return total;
}
#else
struct session {
    uint64_t id;
    char user[48];
    char peer[64];
    uint64_t bytes_in, bytes_out;
    uint32_t cipher, version;
    unsigned char key_material[64];
    uint32_t flags;
    uint64_t opened_at;
    unsigned char tail[32];
};
struct session_hot { int32_t next; uint32_t credit; };
static struct session *pool;
static struct session_hot *hot;
static int32_t head;
__attribute__((noinline)) static void link_sessions(const uint32_t *order)
{
    int32_t *tail = &head;
    for (int i = 0; i < NSESSION; i++) { *tail = order[i]; tail = &hot[order[i]].next; }
    *tail = -1;
}
__attribute__((noinline)) static uint64_t sweep(uint32_t grant)
{
    uint64_t total = 0;
    for (int32_t s = head; s >= 0; s = hot[s].next) {
        if (hot[s].credit > 900) hot[s].credit -= 900; else hot[s].credit += grant;
        total += hot[s].credit;
    }
    return total;
}
#endif
__attribute__((noinline)) static void open_session(int i)
{
    struct session *s = &pool[i];
    memset(s, 0, sizeof *s);
    s->id = 100000 + i; s->cipher = rnd() & 7; s->opened_at = rnd();
    memcpy(s->user, "user", 5); memcpy(s->peer, "10.0.0.1", 9);
    uint32_t c = rnd() % 1000;
#ifndef FIXED
    s->credit = c;
#else
    hot[i].credit = c;
#endif
}
int main(int argc, char **argv)
{
    int rounds = argc > 1 ? atoi(argv[1]) : 360;
    pool = aligned_alloc(64, NSESSION * sizeof *pool);
#ifdef FIXED
    hot = malloc(NSESSION * sizeof *hot);
#endif
    uint32_t *order = malloc(NSESSION * sizeof *order);
    for (int i = 0; i < NSESSION; i++) { open_session(i); order[i] = i; }
    for (int i = NSESSION - 1; i > 0; i--) { int j = rnd() % (i + 1); uint32_t t = order[i]; order[i] = order[j]; order[j] = t; }
    link_sessions(order);
    uint64_t sum = 0;
    for (int r = 0; r < rounds; r++) sum += sweep(r % 37);
    printf("%llu %llu\n", (unsigned long long)sum, (unsigned long long)(pool[77].id ^ pool[99].opened_at));
    return 0;
}
