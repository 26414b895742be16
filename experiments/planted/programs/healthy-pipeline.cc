// A reader cuts a stream in blocks, a worker packs them; blocks go over by a queue, two hundred at a time in flight.
#include <condition_variable>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <mutex>
#include <thread>
#include <vector>

using Block = std::vector<uint8_t>;

class Queue {
  public:
    void put(Block b) {
        std::unique_lock<std::mutex> l(m_);
        room_.wait(l, [&] { return q_.size() < 200; });
        q_.push_back(std::move(b));
        if (q_.size() == 1)
            some_.notify_one();
    }
    Block take() {
        std::unique_lock<std::mutex> l(m_);
        some_.wait(l, [&] { return !q_.empty(); });
        Block b = std::move(q_.front());
        q_.pop_front();
        if (q_.size() == 100)
            room_.notify_one();
        return b;
    }

  private:
    std::mutex m_;
    std::condition_variable room_, some_;
    std::deque<Block> q_;
};

static uint64_t pack(const Block &in, std::vector<uint8_t> &out) {
    // Runs, and matches by a table of the last places.
    static uint16_t last[4096];
    memset(last, 0, sizeof last);
    size_t n = 0;
    for (size_t i = 0; i + 4 < in.size();) {
        uint32_t v;
        memcpy(&v, &in[i], 4);
        uint32_t h = v * 2654435761u >> 20;
        size_t j = last[h], length = 0;
        last[h] = uint16_t(i);
        if (j < i)
            while (i + length < in.size() && length < 255 && in[j + length] == in[i + length])
                length++;
        if (length >= 4) {
            out[n++] = uint8_t(length);
            out[n++] = uint8_t(i - j);
            i += length;
        } else {
            out[n++] = in[i++];
        }
    }
    uint64_t d = n;
    for (size_t i = 0; i < n; i += 16)
        d = d * 31 + out[i];
    return d;
}

int main(int argc, char **argv) {
    int blocks = argc > 1 ? atoi(argv[1]) : 8000;
    Queue q;
    std::thread reader([&] {
        uint32_t x = 1;
        for (int b = 0; b < blocks; b++) {
            Block block(16384);
            for (auto &c : block) {
                x = x * 1664525 + 1013904223;
                c = uint8_t(x >> 24 & x >> 20 & 15);
            }
            q.put(std::move(block));
        }
    });
    std::vector<uint8_t> out(40000);
    uint64_t digest = 0;
    for (int b = 0; b < blocks; b++)
        digest = digest * 1099511628211ull + pack(q.take(), out);
    reader.join();
    printf("blocks %d digest %016llx\n", blocks, (unsigned long long)digest);
}
