// A journal that grows at its end and is read at random.
#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <deque>
#include <iterator>

struct Entry {
    std::uint64_t number, account;
    std::int64_t amount;
    std::uint64_t previous;
};

class Journal {
    std::deque<Entry> entries;
    std::uint64_t seed = 1;

    std::uint64_t random() {
        seed = seed * 6364136223846793005ull + 1442695040888963407ull;
        return seed >> 33;
    }

public:
    void fill(std::size_t n) {
        std::uint64_t number = 0;
        std::generate_n(std::back_inserter(entries), n, [&] {  // dominating object
            number++;
            return Entry{number, random() % 5000, std::int64_t(random() % 100), random() % number};
        });
    }

    std::int64_t follow(std::size_t chains, int length) {
        std::int64_t sum = 0;
        for (std::size_t i = 0; i < chains; i++) {
            std::size_t at = random() % entries.size();
            for (int step = 0; step < length; step++) {
                const Entry &entry = entries[at];
                sum += entry.amount;
                at = (entry.previous * 31 + entry.number) % entries.size();
            }
        }
        return sum;
    }
};

int main() {
    Journal journal;
    journal.fill(200000);
    std::printf("%lld\n", (long long)journal.follow(300000, 10));
}
