// Packets go past the caches into a ring, and each is summed when it is there.
#include <cstdint>
#include <cstdio>
#include <emmintrin.h>
#include <vector>

struct Packet {
    long long words[32];
};

template <int N> struct Ring {
    alignas(64) Packet slots[N];
    unsigned at = 0;

    __attribute__((noinline)) Packet *put(const Packet &from)
    {
        Packet *to = &slots[at++ % N];
        for (int i = 0; i < 32; i++)
            _mm_stream_si64(&to->words[i], from.words[i]);
        return to;
    }
};

static unsigned long long checksum(const Packet &packet)
{
    unsigned long long sum = 1469598103934665603ull;
    for (long long word : packet.words)
        sum = (sum ^ (unsigned long long)word) * 1099511628211ull;
    return sum;
}

int main()
{
    static Ring<64> ring;
    std::vector<Packet> source(16);
    for (unsigned p = 0; p < source.size(); p++)
        for (int i = 0; i < 32; i++)
            source[p].words[i] = (long long)p * 2654435761u + i;
    unsigned long long all = 0;
    for (unsigned turn = 0; turn < 1000000; turn++)
        all += checksum(*ring.put(source[turn % source.size()]));
    std::printf("%llx\n", all);
}
