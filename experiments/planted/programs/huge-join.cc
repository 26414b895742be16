// A star query: sales joined with four dimensions by their surrogate keys, then summed by group.
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <vector>

struct Member {
    uint64_t natural_key;
    uint32_t group;
    uint32_t rate;
    uint32_t from, to;
    uint64_t checksum;
};

struct Dimension {
    std::vector<Member> members;
    uint32_t salt;

    Dimension(uint32_t n, uint32_t salt) : salt(salt) {
        members.reserve(n);
        for (uint32_t i = 0; i < n; i++)
            members.push_back({i * 7919ull + salt, (i * 2654435761u) >> 28, 1 + i % 13, i, i + 365, uint64_t(i) * salt});
    }

    // Most sales are of few members, which were entered at any time.
    uint32_t pick(uint32_t x) const {
        uint32_t n = uint32_t(members.size());
        uint32_t key = x >> 22 ? (x & 4095) * 2654435761u + salt : x * 40503u;
        return uint32_t(uint64_t(key) * n >> 32);
    }
};

int main(int argc, char **argv) {
    uint32_t sales = argc > 1 ? uint32_t(strtoul(argv[1], nullptr, 0)) : 50000000;
    const Dimension product(1000000, 3), shop(1000000, 5), customer(1000000, 7), promotion(1000000, 11);
    uint64_t turnover[16] = {}, x = 42, checks = 0;
    for (uint32_t i = 0; i < sales; i++) {
        x = x * 6364136223846793005ull + 1442695040888963407ull;
        uint32_t a = uint32_t(x >> 32), b = a * 2654435761u;
        const Member &p = product.members[product.pick(a)], &s = shop.members[shop.pick(b)];
        const Member &c = customer.members[customer.pick(b ^ a >> 5)], &m = promotion.members[promotion.pick(a ^ b << 7)];
        turnover[(p.group + s.group) & 15] += p.rate * m.rate + c.rate;
        checks += c.group ^ m.group;
    }
    uint64_t digest = checks;
    for (uint64_t t : turnover)
        digest = digest * 1099511628211ull + t;
    printf("sales %u digest %016llx\n", sales, (unsigned long long)digest);
}
