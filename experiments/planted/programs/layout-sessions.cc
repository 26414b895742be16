// Session table of a proxy: traffic touches sessions at random, and on every
// tick a sweep looks for idle ones.
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <vector>

namespace {

struct Session {
  uint64_t id;
  char user[48];
  char peer[48];
  uint64_t bytes_in;
  uint64_t bytes_out;
  uint32_t last_seen;
  uint32_t flags;
  uint64_t opened;
  char agent[56];
};

constexpr uint32_t kSessions = 40000;
constexpr uint32_t kIdle = 20;
constexpr uint32_t kTicks = 9000;
constexpr int kPackets = 16000;

class Proxy {
 public:
  Proxy() : table_(kSessions) {
    for (uint32_t i = 0; i < kSessions; i++) open(i, 0);
  }

  void packet(uint64_t r, uint32_t now) {
    Session &s = table_[(r >> 20) % kSessions];
    s.bytes_in += r & 1023;
    s.bytes_out += r >> 10 & 1023;
    s.last_seen = now;
  }

  void sweep(uint32_t now) {
    for (uint32_t i = 0; i < kSessions; i++)
      if (now - table_[i].last_seen > kIdle) expire(i, now);
  }

  uint64_t digest() const {
    uint64_t h = expired_;
    for (const Session &s : table_) h = h * 31 + s.bytes_in + s.bytes_out * 3 + s.id;
    return h;
  }

 private:
  void open(uint32_t i, uint32_t now) {
    Session &s = table_[i];
    s.id = ++next_id_;
    snprintf(s.user, sizeof s.user, "user%u", i * 7 % 5000);
    snprintf(s.peer, sizeof s.peer, "10.0.%u.%u", i >> 8 & 255, i & 255);
    snprintf(s.agent, sizeof s.agent, "client/%u", i % 9);
    s.bytes_in = s.bytes_out = 0;
    s.opened = s.last_seen = now;
  }
  void expire(uint32_t i, uint32_t now) {
    expired_ += table_[i].bytes_in ^ table_[i].bytes_out;
    open(i, now);
  }
  std::vector<Session> table_;
  uint64_t next_id_ = 0, expired_ = 0;
};

}  // namespace

int main() {
  Proxy proxy;
  uint64_t rs = 88172645463325252ull;
  for (uint32_t now = 1; now <= kTicks; now++) {
    for (int p = 0; p < kPackets; p++) {
      rs ^= rs << 13;
      rs ^= rs >> 7;
      rs ^= rs << 17;
      proxy.packet(rs, now);
    }
    proxy.sweep(now);
  }
  printf("%llu\n", (unsigned long long)proxy.digest());
}
