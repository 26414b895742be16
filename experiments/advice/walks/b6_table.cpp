// Column statistics of a table held as a vector of row vectors (2600 x 1900 floats), by columns.
#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <vector>

using Table = std::vector<std::vector<float>>;

__attribute__((noinline)) void column_spread_by_column(const Table &t, std::vector<float> &spread)
{
    for (size_t j = 0; j < spread.size(); j++) {
        float lo = t[0][j], hi = lo;
        for (size_t i = 0; i < t.size(); i++) {
            lo = std::min(lo, t[i][j]);
            hi = std::max(hi, t[i][j]);
        }
        spread[j] += hi - lo;
    }
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
        column_spread_by_column(t, spread);
        for (size_t j = 0; j < cols; j++)
            t[(j * 7 + k) % rows][j] += float(k * 9000);
    }
    double sum = 0;
    for (size_t j = 0; j < cols; j++)
        sum += spread[j] * double(j % 9);
    std::printf("%.0f\n", sum);
}
