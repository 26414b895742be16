// A pool of long names that are looked at in random order.
#include <cstdint>
#include <cstdio>
#include <string>
#include <string_view>
#include <vector>

static std::string path_of(std::uint64_t id) {
    std::string path = "/srv/archive/customers/by-number/and-region/europe/";
    path += std::to_string(id * 2654435761u);
    path.append("/documents/invoices/original-copies/scanned-and-signed/2026");  // dominating object
    return path;
}

class Pool {
    std::vector<std::string> names;

public:
    explicit Pool(std::size_t n) {
        names.reserve(n);
        for (std::size_t i = 0; i < n; i++) names.push_back(path_of(i));
    }
    std::string_view name(std::size_t i) const { return names[i]; }
    std::size_t size() const { return names.size(); }
};

static std::uint32_t checksum(std::string_view text) {
    std::uint32_t sum = 0;
    for (std::size_t i = 0; i < text.size(); i += 16) sum = sum * 31 + std::uint8_t(text[i]);
    return sum;
}

int main() {
    Pool pool(60000);
    std::uint64_t random = 1;
    std::uint32_t sum = 0;
    for (int i = 0; i < 800000; i++) {
        random = random * 6364136223846793005ull + 1442695040888963407ull;
        sum += checksum(pool.name((random >> 33) % pool.size()));
    }
    std::printf("%u\n", sum);
}
