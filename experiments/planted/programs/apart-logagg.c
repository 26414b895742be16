/* Log aggregator: two threads parse halves of an access log, each with its own statistics. */
#define _GNU_SOURCE
#include <pthread.h>
#include <stdio.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#define STAT_ALIGN
struct stats {
    uint64_t lines, tokens, errors, bytes, slow, digits, chars;
} STAT_ALIGN;
static struct stats per_thread[2] STAT_ALIGN;
struct job { const char *p, *end; struct stats *st; int passes; };

static uint32_t rs = 12345;
static uint32_t rnd(void) { rs ^= rs << 13; rs ^= rs >> 17; rs ^= rs << 5; return rs; }

static const char *parse_line(const char *p, const char *end, struct stats *st)
{
    /* METHOD path status bytes ms */
    int field = 0;
    uint32_t num = 0, hash = 5381;
    while (p < end) {
        char c = *p++;
        st->chars++;
        if (c == ' ' || c == '\n') {
            st->tokens++;
            if (field == 2) { if (num >= 500) st->errors++; }
            else if (field == 3) st->bytes += num;
            else if (field == 4) { if (num > 800) st->slow++; }
            field++;
            num = 0;
            if (c == '\n') break;
        } else if (field >= 2) {
            num = num * 10 + (uint32_t)(c - '0');
            st->digits++;
        } else
            hash = hash * 33 + (unsigned char)c;
    }
    st->lines += 1 + (hash == 0);
    return p;
}
static void *worker(void *a)
{
    struct job *j = a;
    for (int k = 0; k < j->passes; k++)
        for (const char *p = j->p; p < j->end;)
            p = parse_line(p, j->end, j->st);
    return NULL;
}
int main(void)
{
    enum { LINES = 60000 };
    static const char *paths[] = { "/", "/login", "/api/v1/items", "/static/app.js", "/cart/checkout" };
    char *log = malloc(LINES * 64), *q = log, *half = NULL;
    for (int i = 0; i < LINES; i++) {
        if (i == LINES / 2) half = q;
        q += sprintf(q, "%s %s %u %u %u\n", rnd() & 3 ? "GET" : "POST", paths[rnd() % 5],
                     rnd() % 20 ? 200 : 503, rnd() % 100000, rnd() % 1000);
    }
    struct job j[2] = { { log, half, &per_thread[0], 260 }, { half, q, &per_thread[1], 260 } };
    pthread_t t[2];
    for (int i = 0; i < 2; i++) pthread_create(&t[i], NULL, worker, &j[i]);
    for (int i = 0; i < 2; i++) pthread_join(t[i], NULL);
    struct stats s = { 0 };
    for (int i = 0; i < 2; i++) {
        s.lines += per_thread[i].lines; s.tokens += per_thread[i].tokens;
        s.errors += per_thread[i].errors; s.bytes += per_thread[i].bytes;
        s.slow += per_thread[i].slow; s.digits += per_thread[i].digits; s.chars += per_thread[i].chars;
    }
    printf("%lu %lu %lu %lu %lu %lu %lu\n", s.lines, s.tokens, s.errors, s.bytes, s.slow, s.digits, s.chars);
    return 0;
}
