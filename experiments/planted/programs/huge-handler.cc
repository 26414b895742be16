// Key-value service: parses a request line, finds the record, renders and
// signs the answer.
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <vector>

namespace {

constexpr uint64_t kKeys = 350000;
constexpr int kRequests = 7000000;

struct Record {
  uint64_t key;
  uint32_t version, size;
  uint64_t words[6];
};

class Store {
 public:
  explicit Store(size_t bits) : mask_((size_t(1) << bits) - 1), slots_(mask_ + 1) {}
  void put(uint64_t key) {
    size_t i = slot(key);
    while (slots_[i].key && slots_[i].key != key) i = (i + 1) & mask_;
    Record &r = slots_[i];
    r.key = key;
    r.version++;
    r.size = 40 + key % 50;
    for (int w = 0; w < 6; w++) r.words[w] = key * (2 * w + 3);
  }
  Record *find(uint64_t key) {
    size_t i = slot(key);
    while (slots_[i].key) {
      if (slots_[i].key == key) return &slots_[i];
      i = (i + 1) & mask_;
    }
    return nullptr;
  }

 private:
  size_t slot(uint64_t key) const {
    key *= 0x9E3779B97F4A7C15ull;
    return (key ^ key >> 29) >> 13 & mask_;
  }
  size_t mask_;
  std::vector<Record> slots_;
};

uint64_t sign(const char *p, size_t n) {
  uint64_t h = 1469598103934665603ull;
  for (size_t i = 0; i < n; i++) h = (h ^ (unsigned char)p[i]) * 1099511628211ull;
  return h;
}

char *put_hex(char *p, uint64_t v) {
  static const char digits[] = "0123456789abcdef";
  for (int s = 60; s >= 0; s -= 4) *p++ = digits[v >> s & 15];
  return p;
}

size_t handle(Store &store, const char *request, char *answer) {
  if (memcmp(request, "GET /kv/", 8) != 0) return 0;
  uint64_t key = strtoull(request + 8, nullptr, 10);
  Record *r = store.find(key);
  char *p = answer;
  if (!r) {
    memcpy(p, "404 not found\n", 14);
    return 14;
  }
  // The owner of a record is a record too and counts its uses.
  Record *owner = store.find((r->words[1] >> 5) % kKeys * 7 + 7);
  if (owner) owner->version++;
  memcpy(p, "200 ok ", 7);
  p = put_hex(p + 7, r->key);
  for (uint64_t w : r->words) {
    *p++ = ' ';
    p = put_hex(p, w ^ r->version);
  }
  *p++ = '\n';
  return p - answer;
}

}  // namespace

int main() {
  Store store(19);
  for (uint64_t k = 1; k <= kKeys; k++) store.put(k * 7);
  uint64_t rs = 0x2545F4914F6CDD1Dull, sum = 0;
  char request[64], answer[256];
  memcpy(request, "GET /kv/", 8);
  for (int i = 0; i < kRequests; i++) {
    rs ^= rs << 13;
    rs ^= rs >> 7;
    rs ^= rs << 17;
    uint64_t key = (rs >> 20) % kKeys * 7 + ((rs & 31) == 0) + 7;
    char tmp[24];
    int n = 0;
    do tmp[n++] = char('0' + key % 10);
    while (key /= 10);
    char *p = request + 8;
    while (n) *p++ = tmp[--n];
    memcpy(p, " HTTP/1.0", 10);
    size_t len = handle(store, request, answer);
    sum = sum * 31 + sign(answer, len);
  }
  printf("%llu\n", (unsigned long long)sum);
}
