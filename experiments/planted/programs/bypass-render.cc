// Tile render server: glyph index (hot, about 1.3 MB) is consulted for each request; before each request the
// 6 MB canvas is cleared. Requests come in bursts; between bursts the server re-encodes thumbnails.
#pragma GCC target("avx2")
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <vector>
#include <immintrin.h>
#ifndef LOOK
#define LOOK 40000
#endif
#ifndef THUMB
#define THUMB 1900
#endif
static const size_t CANVAS = 6u << 20;
static void clear_canvas(unsigned char *p, int v) {
    memset(p, v, CANVAS);
}
struct Glyph { uint32_t code, next, adv, pos; };
struct Index {
    std::vector<Glyph> g;
    std::vector<uint32_t> head;
    Index() : g(65536), head(65536, 0) {
        for (uint32_t i = 1; i < g.size(); i++) {
            uint32_t code = i * 2654435761u, b = (code * 0x9E3779B1u) >> 16;
            g[i] = Glyph{code, head[b], i % 13 + 1, (i * 97) % (uint32_t)CANVAS};
            head[b] = i;
        }
    }
    const Glyph *find(uint32_t code) const {
        uint32_t i = head[(code * 0x9E3779B1u) >> 16];
        while (i && g[i].code != code) i = g[i].next;
        return i ? &g[i] : nullptr;
    }
};
static uint64_t thumbs(std::vector<uint8_t> &th, uint64_t s) {
    uint8_t *t = th.data();
    const size_t n = th.size();
    for (int k = 0; k < THUMB; k++) {
        uint32_t prev = t[7], acc = 0;
        for (size_t i = 8; i < n; i++) {
            prev = ((t[i] * 3u + prev + t[i - 8] + k) >> 1) & 255;
            t[i] = uint8_t(prev);
            acc += prev;
        }
        s += acc;
    }
    return s;
}
int main() {
    Index idx;
    unsigned char *canvas = (unsigned char *)aligned_alloc(2 << 20, CANVAS);
    memset(canvas, 0, CANVAS);
    std::vector<uint8_t> th(65536, 7);
    uint64_t sum = 0, x = 1234567;
    for (int burst = 0; burst < 10; burst++) {
        for (int req = 0; req < 20; req++) {
            clear_canvas(canvas, req & 3);
            uint32_t pen = 0;
            for (int k = 0; k < LOOK; k++) {
                x = x * 6364136223846793005ull + 1442695040888963407ull;
                uint32_t i = (uint32_t)((x >> 33) + pen) & 65535;
                const Glyph *g = idx.find(i * 2654435761u);
                if (g) { pen += g->adv; if ((k & 255) == 0) canvas[g->pos] ^= (unsigned char)pen; }
            }
            sum = sum * 31 + pen + canvas[pen % CANVAS];
        }
        sum = thumbs(th, sum);
    }
    printf("%lx\n", sum);
}
