/* SPDX-License-Identifier: MIT OR Apache-2.0 */
// Healthy: the members the walk uses fill the first line of each object (64 of 64 bytes), the cold ones follow.
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
    char label[40];              // cold from here
    double created, updated;
    uint64_t owner;
};
static_assert(sizeof(Cell) == 128, "size");
class Grid {
public:
    explicit Grid(uint32_t n) : cells_(n) {
        for (auto &c : cells_) {
            std::memcpy(c.label, "cell", 5); c.created = rnd(); c.owner = rnd(); c.visits = c.mark = 0;
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
    double age() const { double a = 0; for (auto &c : cells_) a += c.created; return a; }
private:
    std::vector<Cell> cells_;
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
