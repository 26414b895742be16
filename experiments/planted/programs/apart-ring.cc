// Market data from a feed thread to a book thread, by a ring of messages.
#include <atomic>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <thread>
#include <unistd.h>
#include <vector>

struct Tick {
    uint32_t instrument;
    int32_t price;
    uint32_t size;
    uint32_t flags;
};

class Ring {
  public:
    explicit Ring(size_t n) : slots_(n), mask_(n - 1) {}

    bool push(const Tick &t) {
        uint64_t tail = tail_.load(std::memory_order_relaxed);
        if (tail - seen_head_ > mask_) {
            seen_head_ = head_.load(std::memory_order_acquire);
            if (tail - seen_head_ > mask_)
                return false;
        }
        slots_[tail & mask_] = t;
        tail_.store(tail + 1, std::memory_order_release);
        pushed_ += t.size;
        return true;
    }

    bool pop(Tick &t) {
        uint64_t head = head_.load(std::memory_order_relaxed);
        if (head == seen_tail_) {
            seen_tail_ = tail_.load(std::memory_order_acquire);
            if (head == seen_tail_)
                return false;
        }
        t = slots_[head & mask_];
        head_.store(head + 1, std::memory_order_release);
        popped_ += t.size;
        return true;
    }

    uint64_t pushed() const { return pushed_; }
    uint64_t popped() const { return popped_; }

  private:
    std::vector<Tick> slots_;
    uint64_t mask_;
    // of the feed
    std::atomic<uint64_t> tail_{0};
    uint64_t seen_head_ = 0;
    uint64_t pushed_ = 0;
    // of the book
    std::atomic<uint64_t> head_{0};
    uint64_t seen_tail_ = 0;
    uint64_t popped_ = 0;
};

static void feed(Ring &ring, uint64_t n) {
    uint32_t x = 2463534242u;
    for (uint64_t i = 0; i < n; i++) {
        x ^= x << 13;
        x ^= x >> 17;
        x ^= x << 5;
        Tick t{x % 97, int32_t(10000 + (x >> 9) % 512), 1 + (x >> 3) % 100, uint32_t(i)};
        while (!ring.push(t))
            usleep(50);
    }
}

int main(int argc, char **argv) {
    uint64_t n = argc > 1 ? strtoull(argv[1], nullptr, 0) : 30000000;
    auto ring = std::make_unique<Ring>(8192);
    std::thread feeder([&] { feed(*ring, n); });
    struct Level {
        int64_t volume = 0;
        int32_t low = 1 << 30, high = 0, last = 0;
    };
    std::vector<Level> book(97);
    Tick t;
    for (uint64_t i = 0; i < n; i++) {
        while (!ring->pop(t))
            usleep(50);
        Level &l = book[t.instrument];
        l.volume += t.size;
        if (t.price < l.low)
            l.low = t.price;
        if (t.price > l.high)
            l.high = t.price;
        l.last = t.price;
    }
    feeder.join();
    uint64_t digest = 0;
    for (auto &l : book)
        digest = digest * 1099511628211ull + uint64_t(l.volume) * 3 + uint64_t(l.low) + uint64_t(l.high) * 5 + uint64_t(l.last) * 7;
    printf("ticks %llu pushed %llu popped %llu digest %016llx\n", (unsigned long long)n, (unsigned long long)ring->pushed(),
           (unsigned long long)ring->popped(), (unsigned long long)digest);
}
