// A map of heights: rows built by a helper template, read column by column.
#include <cstdio>
#include <functional>
#include <vector>

template <class T>
using Grid = std::vector<std::vector<T>>;

template <class T, class F>
static Grid<T> make_grid(std::size_t rows, std::size_t columns, F value) {
    Grid<T> grid(rows);
    for (std::size_t y = 0; y < rows; y++) {
        grid[y].resize(columns);  // dominating object
        for (std::size_t x = 0; x < columns; x++) grid[y][x] = value(x, y);
    }
    return grid;
}

static Grid<float> load_heights(std::size_t side) {
    return make_grid<float>(side, side, [](std::size_t x, std::size_t y) { return float((x * 31 + y * 17) % 97); });
}

static float steepest(const Grid<float> &heights) {
    float most = 0;
    for (std::size_t x = 0; x < heights[0].size(); x++)
        for (std::size_t y = 1; y < heights.size(); y++) {
            float slope = heights[y][x] - heights[y - 1][x];
            if (slope > most) most = slope;
        }
    return most;
}

int main() {
    auto heights = load_heights(1000);
    float sum = 0;
    for (int pass = 0; pass < 20; pass++) sum += steepest(heights);
    std::printf("%.0f\n", sum);
}
