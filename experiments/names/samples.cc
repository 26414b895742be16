// Readings of a few sensors, joined in random order.
#include <cstdint>
#include <cstdio>
#include <vector>

struct Sample {
    std::uint64_t time;
    double value, weight;
    std::uint32_t sensor, flags;
};

class Random {
    std::uint64_t state = 88172645463325252ull;

public:
    std::uint64_t next() {
        state ^= state << 13, state ^= state >> 7, state ^= state << 17;
        return state;
    }
};

static std::vector<Sample> load_samples(std::size_t n) {
    Random random;
    std::vector<Sample> samples;
    samples.reserve(n);  // dominating object
    for (std::size_t i = 0; i < n; i++)
        samples.push_back({i, double(random.next() % 1000), 1.0, std::uint32_t(random.next() % 16), 0});
    return samples;
}

static double join(const std::vector<Sample> &samples, std::size_t pairs) {
    Random random;
    double sum = 0;
    for (std::size_t i = 0; i < pairs; i++) {
        const Sample &one = samples[random.next() % samples.size()];
        const Sample &other = samples[(random.next() + one.sensor) % samples.size()];
        sum += one.value * other.weight;
    }
    return sum;
}

int main() {
    auto samples = load_samples(300000);
    std::printf("%.0f\n", join(samples, 3000000));
}
