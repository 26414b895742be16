// Word numbers counted in a table of 64 MB, in the order in which they come.
#include <cstdint>
#include <cstdio>
#include <vector>

constexpr uint32_t kWords = 16u << 20, kTokens = 5000000;

static uint32_t word(uint64_t token)
{
    token = token * 0x9e3779b97f4a7c15ull;
    token ^= token >> 29;
    token *= 0xbf58476d1ce4e5b9ull;
    return uint32_t(token >> 32) % kWords;
}

__attribute__((noinline)) void count_words(std::vector<uint32_t> &counts)
{
    for (uint64_t token = 0; token < kTokens; token++)
        counts[word(token)]++;
}

int main()
{
    std::vector<uint32_t> counts(kWords, 1);
    count_words(counts);
    uint64_t most = 0;
    for (uint32_t count : counts)
        most = count > most ? count : most;
    std::printf("%lu\n", most);
}
