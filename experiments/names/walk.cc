// A random walk over a grid on the stack.
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstdio>

struct Cell {
    std::uint32_t visits;
    std::uint32_t turn;
    double weight;
};

constexpr std::size_t SIDE = 384;

static std::uint64_t next(std::uint64_t &random) {
    random ^= random << 13, random ^= random >> 7, random ^= random << 17;
    return random;
}

static double walk(std::uint64_t steps, std::uint64_t seed) {
    std::array<Cell, SIDE * SIDE> grid;  // dominating object
    for (std::size_t i = 0; i < grid.size(); i++) grid[i] = {0, std::uint32_t(i * 40503), 1.0};
    std::size_t at = 0;
    double sum = 0;
    for (std::uint64_t step = 0; step < steps; step++) {
        Cell &cell = grid[at];
        cell.visits++;
        sum += cell.weight;
        at = (next(seed) + cell.turn + cell.visits) % grid.size();
    }
    return sum;
}

int main(int argc, char **) {
    std::printf("%.0f\n", walk(3000000, 88172645463325252ull + argc));
}
