// Shallow-water grid of 24-byte cells, 5200 x 290, stepped row by row.
#include <cstdint>
#include <cstdio>
#include <vector>

struct Cell { float h, u, v, bed; uint32_t flags, age; };

struct Grid {
    int rows, cols;
    std::vector<Cell> cells;
    Cell &at(int r, int c) { return cells[size_t(r) * cols + c]; }
};

static void step_rows(Grid &g, uint32_t wet)
{
    for (int r = 0; r < g.rows; r++)
        for (int c = 0; c < g.cols; c++) {
            Cell &k = g.at(r, c);
            k.h += k.u - k.v;
            k.age += (k.flags & wet) != 0;
        }
}

int main()
{
    Grid g{5200, 290, {}};
    g.cells.resize(size_t(g.rows) * g.cols);
    uint32_t s = 11;
    auto next = [&s] {
        for (int r = 0; r < 3; r++)
            s = (s ^ (s >> 15)) * 0x2c1b3c6du + 0x9e3779b9u;
        return s >> 20;
    };
    for (auto &k : g.cells) {
        k.h = float(next());
        k.u = float(next());
        k.v = float(next());
        k.bed = float(next());
        k.flags = ~0u << (next() & 3);
        k.age = 0;
    }
    for (int i = 0; i < 20; i++)
        step_rows(g, 1u << (i & 3));
    double sum = 0;
    for (auto &k : g.cells)
        sum += k.h * 3 + k.age;
    std::printf("%.0f\n", sum);
}
