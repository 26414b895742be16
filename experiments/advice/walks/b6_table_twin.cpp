// Column statistics of a table held as a vector of row vectors (2600 x 1900 floats), by rows.
#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <vector>

using Table = std::vector<std::vector<float>>;

__attribute__((noinline)) void column_spread_by_row(const Table &t, std::vector<float> &spread)
{
    std::vector<float> lo(t[0]), hi(t[0]);
    for (const auto &row : t)
        for (size_t j = 0; j < spread.size(); j++) {
            lo[j] = std::min(lo[j], row[j]);
            hi[j] = std::max(hi[j], row[j]);
        }
    for (size_t j = 0; j < spread.size(); j++)
        spread[j] += hi[j] - lo[j];
}

int main()
{
    const size_t rows = 2600, cols = 1900;
    Table t;
    uint64_t s = 17;
    for (size_t i = 0; i < rows; i++) {
        std::vector<float> row(cols);
        for (auto &v : row) {
            for (int r = 0; r < 8; r++)
                s = s * 6364136223846793005ull + 1442695040888963407ull;
            v = float(s >> 44) + float(i % 3);
        }
        t.push_back(std::move(row));
    }
    std::vector<float> spread(cols);
    for (int k = 0; k < 6; k++) {
        column_spread_by_row(t, spread);
        for (size_t j = 0; j < cols; j++)
            t[(j * 7 + k) % rows][j] += float(k * 9000);
    }
    double sum = 0;
    for (size_t j = 0; j < cols; j++)
        sum += spread[j] * double(j % 9);
    std::printf("%.0f\n", sum);
}
