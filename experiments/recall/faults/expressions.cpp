// SPDX-License-Identifier: MIT OR Apache-2.0
//
// A simulation steps grids of 2 MiB with the operators of a vector class, so that each operator returns a new vector.
// The temporaries of a step are freed together, and the C library hands their memory back to the kernel: it keeps at
// most twice its largest freed mapping. The twin's vectors take their memory from those that are gone.
//
// SIZE: steps.
//
//: half = "third"
//: kind = "keep"
//: names = ["Grid", "fresh_cells", "heat_step", "operator+", "operator-", "operator*", "laplacian", "burn_rate"]
//: reach = "outside"
//: traced = 60
//: measured = 60
#include "../planted.h"

#include <cmath>
#include <utility>
#include <vector>

static const size_t CELLS = 1 << 18;

static std::vector<std::vector<double>> spare;

HOT static std::vector<double> fresh_cells() {
    if (spare.empty())
        return std::vector<double>(CELLS);
    std::vector<double> cells = std::move(spare.back());
    spare.pop_back();
    cells.assign(CELLS, 0.0);
    return cells;
}

struct Grid {
    std::vector<double> cells = fresh_cells();

    Grid() = default;
    Grid(Grid &&other) : cells(std::move(other.cells)) {}
    ~Grid() {
        if (TWINNED && !cells.empty())
            spare.push_back(std::move(cells));
    }
};

template <class Cell> static Grid made(Cell cell) {
    Grid out;
    double *to = out.cells.data();
    for (size_t i = 0; i < CELLS; i++)
        to[i] = cell(i);
    return out;
}

HOT static Grid operator+(const Grid &a, const Grid &b) {
    return made([x = a.cells.data(), y = b.cells.data()](size_t i) { return x[i] + y[i]; });
}

HOT static void operator+=(Grid &a, const Grid &b) {
    for (size_t i = 0; i < CELLS; i++)
        a.cells[i] += b.cells[i];
}

HOT static Grid operator-(const Grid &a, const Grid &b) {
    return made([x = a.cells.data(), y = b.cells.data()](size_t i) { return x[i] - y[i]; });
}

HOT static Grid operator*(const Grid &a, double by) {
    return made([x = a.cells.data(), by](size_t i) { return x[i] * by; });
}

HOT static Grid laplacian(const Grid &a) {
    return made([x = a.cells.data()](size_t i) { return x[(i + CELLS - 1) % CELLS] - 2 * x[i] + x[(i + 1) % CELLS]; });
}

HOT static Grid burn_rate(const Grid &a) {
    return made([x = a.cells.data()](size_t i) { return 1 / (1 + std::exp(-x[i])); });
}

HOT static void heat_step(Grid &heat, const Grid &source, double dt) {
    heat += (source - heat * 0.25 + laplacian(heat) + burn_rate(heat)) * dt;
}

int main(int argc, char **argv) {
    uint64_t steps = argument(argc, argv, 1, 1 << 20), begun = now_ns(), digest = 0;
    Grid source = made([](size_t i) { return static_cast<double>(mix(i) & 1023); }), heat;
    for (uint64_t i = 0; i < steps; i++)
        heat_step(heat, source, 0.0625);
    for (double cell : heat.cells)
        digest += static_cast<uint64_t>(cell * 64);
    return report(mix(digest), begun);
}
