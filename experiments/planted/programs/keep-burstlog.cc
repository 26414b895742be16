// Access-log monitor: parses log blocks all the time, and now and then
// (after WINDOW_BLOCKS blocks) rolls the window up into client x minute grids.
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace {

constexpr int kClients = 12000;
constexpr int kMinutes = 1024;
constexpr int kWindows = 8;
constexpr int kWindowBlocks = 120;
constexpr int kMetrics = 2;

struct Rng {
  uint64_t s;
  uint32_t next() {
    s ^= s << 13;
    s ^= s >> 7;
    s ^= s << 17;
    return uint32_t(s >> 16);
  }
};

std::string make_block(Rng &rng, size_t bytes) {
  static const char *paths[] = {"/", "/login", "/cart", "/api/v1/items", "/api/v1/orders",
                                "/static/app.js", "/static/site.css", "/search", "/health", "/img/logo.png"};
  std::string out;
  out.reserve(bytes + 256);
  char line[256];
  while (out.size() < bytes) {
    uint32_t client = rng.next() % kClients;
    int n = snprintf(line, sizeof line, "10.%u.%u.%u %u GET %s?id=%u %u %u %u\n", client >> 16, (client >> 8) & 255,
                     client & 255, rng.next() % kMinutes, paths[rng.next() % 10], rng.next() % 5000,
                     (rng.next() & 15) ? 200u : 404u, rng.next() % 90000, rng.next() % 3000);
    out.append(line, n);
  }
  return out;
}

struct Sample {
  uint32_t client;
  uint16_t minute;
  uint16_t latency;
};

struct PathStat {
  uint64_t hits = 0, bytes = 0, errors = 0;
};

class Monitor {
 public:
  void parse_block(const std::string &text) {
    const char *p = text.data(), *end = p + text.size();
    while (p < end) {
      uint32_t client = 0;
      number(p);
      for (int i = 0; i < 3; i++) {
        ++p;
        client = client << 8 | number(p);
      }
      ++p;
      uint32_t minute = number(p);
      p += 5;
      const char *path = p;
      while (*p != '?' && *p != ' ') ++p;
      std::string_view key(path, p - path);
      while (*p != ' ') ++p;
      ++p;
      uint32_t status = number(p);
      ++p;
      uint32_t bytes = number(p);
      ++p;
      uint32_t latency = number(p);
      ++p;
      PathStat &st = paths_[std::string(key)];
      st.hits++;
      st.bytes += bytes;
      st.errors += status >= 400;
      if (window_.size() < window_cap) window_.push_back({client, uint16_t(minute), uint16_t(latency)});
      else window_[fill_++ % window_cap] = {client, uint16_t(minute), uint16_t(latency)};
    }
  }

  // Busiest (client, minute) cell and mean of the occupied cells for one metric.
  uint64_t rollup(int metric) {
    size_t cells = size_t(kClients) * kMinutes;
    std::unique_ptr<uint32_t[], decltype(&free)> grid((uint32_t *)calloc(cells, sizeof(uint32_t)), free);
    if (!grid) abort();
    uint64_t total = 0;
    uint32_t best = 0;
    for (const Sample &s : window_) {
      uint32_t minute = (s.minute + metric * 37) & (kMinutes - 1);
      uint32_t &cell = grid[size_t(s.client) * kMinutes + minute];
      cell += (s.latency >> metric) + 1;
      if (cell > best) best = cell;
      total += cell;
    }
    return total * 31 + best;
  }

  uint64_t digest() const {
    uint64_t h = 0;
    for (auto &kv : paths_) h += kv.second.hits * 3 + kv.second.bytes * 7 + kv.second.errors * kv.first.size();
    return h;
  }

 private:
  static uint32_t number(const char *&p) {
    uint32_t v = 0;
    while (*p >= '0' && *p <= '9') v = v * 10 + uint32_t(*p++ - '0');
    return v;
  }
  static constexpr size_t window_cap = 30000;
  std::vector<Sample> window_;
  size_t fill_ = 0;
  std::unordered_map<std::string, PathStat> paths_;
};

}  // namespace

int main() {
  Rng rng{88172645463325252ull};
  std::vector<std::string> blocks;
  for (int i = 0; i < 4; i++) blocks.push_back(make_block(rng, 1 << 19));
  Monitor mon;
  uint64_t sum = 0;
  for (int w = 0; w < kWindows; w++) {
    for (int b = 0; b < kWindowBlocks; b++)
      for (auto &blk : blocks) mon.parse_block(blk);
    for (int m = 0; m < kMetrics; m++) sum = sum * 1099511628211ull + mon.rollup(m);
  }
  printf("%llu %llu\n", (unsigned long long)sum, (unsigned long long)mon.digest());
}
