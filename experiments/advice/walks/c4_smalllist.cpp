// A std::list of 260 numbers, walked often: dependent loads, but all of them in the first-level cache.
#include <cstdint>
#include <cstdio>
#include <list>

__attribute__((noinline)) uint64_t walk_small_list(const std::list<uint32_t> &l, uint64_t seed)
{
    uint64_t sum = seed;
    for (uint32_t v : l)
        sum += v ^ seed;
    return sum;
}

int main()
{
    std::list<uint32_t> l;
    for (uint32_t i = 0; i < 260; i++)
        i & 1 ? l.push_front(i * 2654435761u) : l.push_back(i * 2246822519u);
    uint64_t sum = 0;
    for (int k = 0; k < 600000; k++)
        sum = walk_small_list(l, sum);
    std::printf("%016llx\n", (unsigned long long)sum);
}
