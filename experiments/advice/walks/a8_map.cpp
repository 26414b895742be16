// Stock levels in a std::map, looked up in random order.
#include <cstdint>
#include <cstdio>
#include <map>
#include <vector>

using Stock = std::map<uint32_t, uint64_t>;

static uint64_t seed = 7;
static uint32_t rnd()
{
    seed ^= seed << 13;
    seed ^= seed >> 7;
    seed ^= seed << 17;
    return uint32_t(seed >> 20);
}

constexpr uint32_t kItems = 300000, kQueries = 330000;

__attribute__((noinline)) uint64_t sum_from_map(const Stock &stock, const std::vector<uint32_t> &wanted)
{
    uint64_t sum = 0;
    for (uint32_t w : wanted) {
        auto it = stock.lower_bound(w);
        if (it != stock.end())
            sum += it->second;
    }
    return sum;
}

int main()
{
    Stock &stock = *new Stock;
    uint64_t level = 1;
    for (uint32_t i = 0; i < kItems; i++) {
        for (int r = 0; r < 220; r++)
            level = level * 6364136223846793005ull + 1442695040888963407ull;
        stock.emplace_hint(stock.end(), i * 10 + i % 7, level >> 40);
    }
    std::vector<uint32_t> wanted(kQueries);
    for (auto &w : wanted)
        w = rnd() % (kItems * 10);
    std::printf("%016llx\n", (unsigned long long)sum_from_map(stock, wanted));
}
