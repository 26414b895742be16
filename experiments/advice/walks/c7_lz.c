/* Greedy LZ77 compressor (64 KiB window, 16 Ki-entry hash table) over 20 MiB of generated text. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define LEN (20u << 20)
#define HASH 14

static uint32_t head[1u << HASH];

static uint32_t load32(const uint8_t *p)
{
    uint32_t v;
    memcpy(&v, p, 4);
    return v;
}

__attribute__((noinline)) static size_t lz_compress(uint8_t *out, const uint8_t *in, size_t n)
{
    uint8_t *o = out;
    size_t i = 0;
    while (i + 8 < n) {
        uint32_t h = (load32(in + i) * 2654435761u) >> (32 - HASH);
        size_t cand = head[h];
        head[h] = (uint32_t)i;
        if (cand < i && i - cand < 65536 && load32(in + cand) == load32(in + i)) {
            size_t len = 4;
            while (len < 255 && i + len < n && in[cand + len] == in[i + len])
                len++;
            *o++ = 0xff;
            *o++ = (uint8_t)len;
            *o++ = (uint8_t)(i - cand);
            *o++ = (uint8_t)((i - cand) >> 8);
            i += len;
        } else {
            *o++ = in[i++];
        }
    }
    while (i < n)
        *o++ = in[i++];
    return (size_t)(o - out);
}

int main(void)
{
    static const char *word[32] = { "the ", "of ", "and ", "memory ", "cache ", "line ", "loop ", "order ", "miss ",
        "load ", "store ", "that ", "with ", "from ", "is ", "in ", "a ", "row ", "column ", "list ", "tree ",
        "graph ", "node ", "next ", "table ", "hash ", "key ", "value ", "page ", "walk ", "sum ", "end.\n" };
    uint8_t *in = malloc(LEN + 16), *out = malloc(2 * (size_t)LEN);
    uint64_t s = 6;
    size_t n = 0;
    while (n < LEN) {
        s = s * 6364136223846793005ull + 1442695040888963407ull;
        const char *w = word[(s >> 40) & (s >> 48) & 31];
        size_t l = strlen(w);
        memcpy(in + n, w, l);
        n += l;
        if ((s >> 60) == 0)
            in[n++] = (uint8_t)('0' + (s >> 33) % 10);
        if (n + 8 > LEN)
            break;
    }
    size_t m = lz_compress(out, in, n);
    uint32_t sum = 0;
    for (size_t i = 0; i < m; i++)
        sum = sum * 31 + out[i];
    printf("%zu %zu %08x\n", n, m, sum);
    return 0;
}
