// An order book: price levels in a tree whose memory is a monotonic buffer.
#include <cstdint>
#include <cstdio>
#include <map>
#include <memory_resource>

struct Level {
    std::int64_t quantity = 0;
    std::int32_t orders = 0;
};

class Book {
    std::pmr::monotonic_buffer_resource memory;
    std::pmr::map<std::uint32_t, Level> levels{&memory};

    Level &level(std::uint32_t price) {
        auto [at, fresh] = levels.try_emplace(price);  // dominating object
        return at->second;
    }

public:
    void add(std::uint32_t price, std::int64_t quantity) {
        Level &l = level(price);
        l.quantity += quantity;
        l.orders++;
    }

    std::int64_t depth() const {
        std::int64_t sum = 0;
        for (const auto &entry : levels) sum += entry.second.quantity;
        return sum;
    }
};

static void replay(Book &book, int orders) {
    std::uint32_t random = 2463534242u;
    for (int i = 0; i < orders; i++) {
        random ^= random << 13, random ^= random >> 17, random ^= random << 5;
        book.add(random % 60000, i % 100);
    }
}

int main() {
    Book book;
    replay(book, 250000);
    std::printf("%lld\n", (long long)book.depth());
}
