// SPDX-License-Identifier: MIT OR Apache-2.0
//
// A cache of 40,000 documents of 2.4 KB, in a list by last use. Each round uses some of them, and then adds up how much
// could be evicted. The list runs through the heap in no order, and nearly every document is in a page of its own, so
// that each step waits for a translation. The twin's nodes lie in pages of 2 MiB.
//
// SIZE: rounds.
//
//: half = "third"
//: kind = "huge"
//: names = ["stale_bytes", "touch_document", "load_document", "Document"]
//: reach = "outside"
//: traced = 80
//: measured = 80
#include "../planted.h"

#include <list>
#include <vector>

struct Document {
    uint64_t number;
    uint32_t used, bytes;
    char text[2400];
};

static const uint64_t DOCUMENTS = 40000;

// The program ends with its nodes.
template <class T> struct Nodes {
    using value_type = T;
    Nodes() = default;
    template <class U> Nodes(const Nodes<U> &) {}
    HOT T *allocate(size_t n) {
        static char *next = TWINNED ? static_cast<char *>(paged(DOCUMENTS * (sizeof(T) + 16))) : nullptr;
        if (!TWINNED)
            return static_cast<T *>(std::malloc(n * sizeof(T)));
        next += n * (sizeof(T) + 16); // As far as malloc places them.
        return reinterpret_cast<T *>(next - n * (sizeof(T) + 16));
    }
    void deallocate(T *, size_t) {}
    bool operator==(const Nodes &) const { return true; }
    bool operator!=(const Nodes &) const { return false; }
};

class Cache {
public:
    HOT void load_document(uint64_t number) {
        by_use_.emplace_front();
        Document &document = by_use_.front();
        document.number = number;
        document.bytes = static_cast<uint32_t>(1000 + mix(number + 1) % 1400);
        memset(document.text, 'a' + static_cast<int>(number % 26), document.bytes);
        by_number_.push_back(by_use_.begin());
    }

    HOT void touch_document(uint64_t number, uint32_t now) {
        by_use_.splice(by_use_.begin(), by_use_, by_number_[number]);
        by_use_.front().used = now;
    }

    HOT uint64_t stale_bytes(uint32_t since) const {
        uint64_t bytes = 0;
        for (const Document &document : by_use_)
            if (document.used <= since)
                bytes += document.bytes;
        return bytes;
    }

private:
    using List = std::list<Document, Nodes<Document>>;
    List by_use_;
    std::vector<List::iterator> by_number_;
};

int main(int argc, char **argv) {
    uint64_t rounds = argument(argc, argv, 1, 1 << 20), digest = 0, begun = now_ns();
    static Cache cache;
    for (uint64_t i = 0; i < DOCUMENTS; i++)
        cache.load_document(i);
    for (uint64_t i = 0; i < DOCUMENTS; i++)
        cache.touch_document(mix(i + 1) % DOCUMENTS, 0);
    for (uint64_t round = 0; round < rounds; round++) {
        for (uint64_t i = 0; i < 500; i++)
            cache.touch_document(mix(round * 500 + i) % DOCUMENTS, static_cast<uint32_t>(round));
        digest = mix(digest + cache.stale_bytes(static_cast<uint32_t>(round / 2)));
    }
    return report(digest, begun);
}
