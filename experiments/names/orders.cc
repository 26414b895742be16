// Orders with an operator new of their own, which takes them from chunks.
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <memory>
#include <vector>

class Chunks {
    static constexpr std::size_t CHUNK = 1 << 16;
    std::vector<std::unique_ptr<std::byte[]>> chunks;
    std::size_t left = 0;

    void grow() {
        chunks.push_back(std::make_unique<std::byte[]>(CHUNK));  // dominating object
        left = CHUNK;
    }

public:
    void *take(std::size_t bytes) {
        if (left < bytes) grow();
        left -= bytes;
        return chunks.back().get() + left;
    }
};

struct Order {
    static Chunks memory;
    Order *next;
    std::uint64_t customer, amount, state[5];

    Order(Order *next, std::uint64_t customer) : next(next), customer(customer), amount(customer % 90) {}
    static void *operator new(std::size_t bytes) { return memory.take(bytes); }
    static void operator delete(void *) {}
};

Chunks Order::memory;

static Order *receive(Order **shelves, std::size_t count, int orders) {
    std::uint64_t random = 1;
    for (int i = 0; i < orders; i++) {
        random = random * 6364136223846793005ull + 1442695040888963407ull;
        Order *&shelf = shelves[(random >> 33) % count];
        shelf = new Order(shelf, random >> 40);
    }
    return shelves[0];
}

int main() {
    static Order *shelves[512];
    receive(shelves, 512, 60000);
    std::uint64_t sum = 0;
    for (int pass = 0; pass < 35; pass++)
        for (Order *shelf : shelves)
            for (Order *order = shelf; order; order = order->next) sum += order->amount + order->state[pass % 5]++ % 2;
    std::printf("%llu\n", (unsigned long long)sum);
}
