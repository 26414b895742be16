// Sorts 2.4 million 32-bit numbers.
#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <vector>

static void sort_numbers(std::vector<uint32_t> &v)
{
    std::sort(v.begin(), v.end());
}

int main()
{
    std::vector<uint32_t> v(2400000);
    uint64_t s = 8;
    for (auto &x : v) {
        s = s * 6364136223846793005ull + 1442695040888963407ull;
        x = uint32_t(s >> 32);
    }
    sort_numbers(v);
    uint64_t sum = 0;
    for (auto x : v)
        sum = sum * 31 + x;
    std::printf("%016llx\n", (unsigned long long)sum);
}
