/* Full-text index in memory: build the posting lists, then answer queries,
 * each with a score accumulator over all documents. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define DOCS 9000000u
#define TERMS 4096u
#define TERMS_PER_DOC 8u
#define QUERIES 54
#define TOPK 16

static uint64_t rs = 0x9E3779B97F4A7C15ull;
static inline uint32_t rnd(void) {
    rs ^= rs << 13; rs ^= rs >> 7; rs ^= rs << 17;
    return (uint32_t)(rs >> 20);
}

struct index {
    uint32_t *start;    /* TERMS + 1 */
    uint32_t *posting;  /* documents by term */
    float *prior;       /* static rank of each document */
};

static uint32_t pick_term(uint64_t x) {
    uint32_t a = (uint32_t)x & (TERMS - 1), b = (uint32_t)(x >> 12) & (TERMS - 1);
    return a < b ? a : b;   /* low terms are more frequent */
}

static uint64_t doc_hash(uint32_t doc, uint32_t k) {
    uint64_t x = ((uint64_t)doc << 8 | k) * 0xD6E8FEB86659FD93ull;
    x ^= x >> 32; x *= 0xD6E8FEB86659FD93ull; x ^= x >> 29;
    return x;
}

static void build(struct index *ix) {
    ix->start = calloc(TERMS + 2, sizeof *ix->start);
    for (uint32_t d = 0; d < DOCS; d++)
        for (uint32_t k = 0; k < TERMS_PER_DOC; k++)
            ix->start[pick_term(doc_hash(d, k)) + 2]++;
    for (uint32_t t = 2; t < TERMS + 2; t++) ix->start[t] += ix->start[t - 1];
    ix->posting = malloc((size_t)ix->start[TERMS + 1] * sizeof *ix->posting);
    for (uint32_t d = 0; d < DOCS; d++)
        for (uint32_t k = 0; k < TERMS_PER_DOC; k++)
            ix->posting[ix->start[pick_term(doc_hash(d, k)) + 1]++] = d;
    ix->prior = malloc(DOCS * sizeof *ix->prior);
    for (uint32_t d = 0; d < DOCS; d++)
        ix->prior[d] = (float)(rnd() & 1023) / 1024.0f;
}

struct hit { float score; uint32_t doc; };

static uint64_t query(const struct index *ix, const uint32_t *terms, int nterms) {
    float *score = malloc(DOCS * sizeof *score);
    if (!score) abort();
    memcpy(score, ix->prior, DOCS * sizeof *score);
    for (int i = 0; i < nterms; i++) {
        uint32_t from = ix->start[terms[i]], to = ix->start[terms[i] + 1];
        float idf = 1.0f + 4.0f * (1.0f - (float)(to - from) / (float)DOCS);
        for (uint32_t p = from; p < to; p++) score[ix->posting[p]] += idf;
    }
    struct hit top[TOPK] = {{0, 0}};
    for (uint32_t d = 0; d < DOCS; d++) {
        if (score[d] <= top[TOPK - 1].score) continue;
        int j = TOPK - 1;
        while (j > 0 && top[j - 1].score < score[d]) { top[j] = top[j - 1]; j--; }
        top[j].score = score[d];
        top[j].doc = d;
    }
    free(score);
    uint64_t h = 0;
    for (int j = 0; j < TOPK; j++) h = h * 1099511628211ull + top[j].doc + (uint64_t)(top[j].score * 1000.0f);
    return h;
}

int main(void) {
    struct index ix;
    build(&ix);
    uint64_t sum = 0;
    for (int q = 0; q < QUERIES; q++) {
        uint32_t terms[3];
        for (int i = 0; i < 3; i++) terms[i] = rnd() % TERMS;
        sum = sum * 31 + query(&ix, terms, 3);
    }
    printf("%llu\n", (unsigned long long)sum);
    return 0;
}
