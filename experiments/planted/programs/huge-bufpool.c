/* Buffer pool of a small database: loads its pages from a (made up) journal,
 * checking every revision, then serves pins that follow links from page to
 * page. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define FRAMES 26000u
#define PAGE 4096
#define REVISIONS 5
#define PINS 55000000u

struct frame {
    uint32_t page, crc;
    uint32_t pins, dirty;
    uint32_t link[8];       /* pages that this one refers to */
    uint64_t lsn;
    uint64_t spare;
    uint8_t data[PAGE];
};

static uint64_t rs = 0x853C49E6748FEA9Bull;
static inline uint32_t rnd(void) {
    rs ^= rs << 13; rs ^= rs >> 7; rs ^= rs << 17;
    return (uint32_t)(rs >> 24);
}

static uint32_t table[256];

static void crc_init(void) {
    for (uint32_t i = 0; i < 256; i++) {
        uint32_t c = i;
        for (int k = 0; k < 8; k++) c = c & 1 ? 0xEDB88320u ^ c >> 1 : c >> 1;
        table[i] = c;
    }
}

static uint32_t crc(const uint8_t *p, size_t n) {
    uint32_t c = ~0u;
    while (n--) c = table[(c ^ *p++) & 255] ^ c >> 8;
    return ~c;
}

static struct frame *load(void) {
    struct frame *pool = malloc(FRAMES * sizeof *pool);
    if (!pool) abort();
    for (uint32_t i = 0; i < FRAMES; i++) {
        struct frame *f = &pool[i];
        memset(f, 0, sizeof *f);
        f->page = i;
        for (int k = 0; k < 8; k++) f->link[k] = (uint32_t)((uint64_t)rnd() * FRAMES >> 32);
        for (int r = 0; r < REVISIONS; r++) {
            for (int row = 0; row < 16; row++) {
                uint32_t v = rnd();
                memcpy(f->data + (v & (PAGE - 64)), &v, sizeof v);
            }
            f->crc = crc(f->data, PAGE);
            f->lsn += f->crc & 0xFFFF;
        }
    }
    return pool;
}

int main(void) {
    crc_init();
    struct frame *pool = load();
    uint64_t sum = 0;
    uint32_t at = 0;
    for (uint32_t i = 0; i < PINS; i++) {
        struct frame *f = &pool[at];
        f->pins++;
        f->dirty += f->crc & 1;
        sum += f->lsn;
        at = f->link[(f->pins + i) & 7];
        if ((i & 63) == 63) at = (uint32_t)((uint64_t)rnd() * FRAMES >> 32);
    }
    for (uint32_t i = 0; i < FRAMES; i++) sum = sum * 31 + pool[i].pins + pool[i].dirty;
    printf("%llu\n", (unsigned long long)sum);
    free(pool);
    return 0;
}
