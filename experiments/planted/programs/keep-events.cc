// Market-data batcher: gathers the events of a batch in a growing vector, then
// computes the volume-weighted price of every symbol.
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <vector>

namespace {

struct Event {
  uint64_t time;
  int64_t price;
  uint32_t symbol;
  uint32_t quantity;
};

constexpr int kSymbols = 2048;
constexpr int kBatches = 24;

class Feed {
 public:
  bool next(Event &ev) {
    state_ ^= state_ << 13;
    state_ ^= state_ >> 7;
    state_ ^= state_ << 17;
    clock_ += state_ & 255;
    ev.time = clock_;
    ev.symbol = uint32_t(state_ >> 8) % kSymbols;
    ev.quantity = uint32_t(state_ >> 24) % 1000 + 1;
    ev.price = 10000 + int64_t(ev.symbol) + int64_t(state_ >> 40 & 127);
    return clock_ < limit_;
  }
  void extend(uint64_t ticks) { limit_ = clock_ + ticks; }

 private:
  uint64_t state_ = 0x2545F4914F6CDD1Dull, clock_ = 0, limit_ = 0;
};

struct Batch {
  std::vector<Event> events;
  void collect(Feed &feed) {
    Event ev;
    while (feed.next(ev)) events.push_back(ev);
  }
  uint64_t vwap() const {
    std::vector<int64_t> value(kSymbols), volume(kSymbols);
    std::vector<double> smooth(kSymbols, 10000.0), swing(kSymbols);
    for (const Event &ev : events) {
      value[ev.symbol] += ev.price * ev.quantity;
      volume[ev.symbol] += ev.quantity;
      double off = double(ev.price) - smooth[ev.symbol];
      smooth[ev.symbol] += off * (ev.quantity / (ev.quantity + 2000.0));
      swing[ev.symbol] += std::sqrt(off * off + 1.0) / double(1 + (ev.time & 15));
    }
    uint64_t h = events.size();
    for (int s = 0; s < kSymbols; s++) {
      h = h * 31 + (volume[s] ? value[s] / volume[s] : 0);
      h += uint64_t(smooth[s] * 100.0) + uint64_t(swing[s]);
    }
    return h;
  }
};

}  // namespace

int main() {
  Feed feed;
  uint64_t sum = 0;
  for (int b = 0; b < kBatches; b++) {
    feed.extend(400000000 + b % 5 * 10000000);
    Batch batch;
    batch.collect(feed);
    sum = sum * 1099511628211ull + batch.vwap();
  }
  printf("%llu\n", (unsigned long long)sum);
}
