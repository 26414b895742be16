/* SPDX-License-Identifier: MIT OR Apache-2.0 */
// The members the walk uses fill the first line of each object (64 of 64 bytes), the cold ones follow on the second: every
// other line of the array is never read. Twin: the cold members in an array of their own.
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <vector>
static uint64_t seed = 33;
static uint32_t rnd() { seed = seed * 6364136223846793005ull + 1442695040888963407ull; return seed >> 33; }
struct alignas(64) Cell {
    uint32_t link[8];            // hot
    uint16_t cost[8];            // hot
    uint64_t visits;             // hot
    uint64_t mark;               // hot
#ifdef FIXED
};
struct Cold {
#endif
    char label[40];              // cold from here
    double created, updated;
    uint64_t owner;
};
#ifdef FIXED
static_assert(sizeof(Cell) == 64, "size");
#else
static_assert(sizeof(Cell) == 128, "size");
#endif
class Grid {
public:
    explicit Grid(uint32_t n) : cells_(n) {
#ifdef FIXED
        cold_.resize(n);
#endif
        for (uint32_t i = 0; i < n; i++) {
            Cell &c = cells_[i];
            auto &d = cold(i);
            std::memcpy(d.label, "cell", 5); d.created = rnd(); d.owner = rnd(); c.visits = c.mark = 0;
            for (int k = 0; k < 8; k++) { c.link[k] = rnd() % n; c.cost[k] = rnd() & 0xfff; }
        }
    }
    __attribute__((noinline)) uint64_t wander(uint32_t at, int steps) {
        uint64_t sum = 0;
        for (int s = 0; s < steps; s++) {
            Cell &c = cells_[at];
            unsigned k = (c.visits++ + (c.mark >> 3)) & 7;
            uint64_t total = 0;
            uint32_t mix = 0;
            for (int j = 0; j < 8; j++) { total += c.cost[j]; mix ^= c.link[j]; }
            c.mark += total & 63; sum += total + (mix & 1);
            at = c.link[k];
        }
        return sum + at;
    }
    double age() { double a = 0; for (uint32_t i = 0; i < cells_.size(); i++) a += cold(i).created; return a; }
private:
    std::vector<Cell> cells_;
#ifdef FIXED
    std::vector<Cold> cold_;
    Cold &cold(uint32_t i) { return cold_[i]; }
#else
    Cell &cold(uint32_t i) { return cells_[i]; }
#endif
};
int main(int argc, char **argv)
{
    int rounds = argc > 1 ? atoi(argv[1]) : 200;
    Grid g(32768);
    uint64_t sum = 0;
    for (int r = 0; r < rounds; r++) sum += g.wander(rnd() % 32768, 20000);
    std::printf("%llu %.0f\n", (unsigned long long)sum, g.age());
    return 0;
}
