// Tokens of a small language, its names interned, a count for each.
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

static std::string program(int functions) {
    std::string s;
    uint32_t x = 1;
    for (int f = 0; f < functions; f++) {
        s += "fn work" + std::to_string(f % 90) + "(alpha, beta) {\n";
        for (int l = 0; l < 8; l++) {
            x = x * 1664525 + 1013904223;
            s += "  let v" + std::to_string(x >> 27) + " = alpha * " + std::to_string(x >> 22) + " + f" + std::to_string((x >> 15) & 63) +
                 "(beta); // step\n";
        }
        s += "  return v1 - v2;\n}\n";
    }
    return s;
}

class Interner {
  public:
    uint32_t id(std::string_view name) {
        auto it = ids_.find(name);
        if (it != ids_.end())
            return it->second;
        uint32_t n = uint32_t(ids_.size());
        ids_.emplace(name, n);
        return n;
    }
    size_t size() const { return ids_.size(); }

  private:
    std::unordered_map<std::string_view, uint32_t> ids_;
};

int main(int argc, char **argv) {
    int rounds = argc > 1 ? atoi(argv[1]) : 1500;
    std::string text = program(400);
    Interner names;
    std::vector<uint64_t> count(1024);
    uint64_t digest = 0;
    for (int r = 0; r < rounds; r++) {
        const char *p = text.data(), *end = p + text.size();
        while (p < end) {
            if (*p <= ' ') {
                p++;
            } else if (p[0] == '/' && p[1] == '/') {
                while (*p != '\n')
                    p++;
            } else if ((*p | 32) >= 'a' && (*p | 32) <= 'z') {
                const char *b = p;
                while (((*p | 32) >= 'a' && (*p | 32) <= 'z') || (*p >= '0' && *p <= '9'))
                    p++;
                count[names.id({b, size_t(p - b)})]++;
            } else if (*p >= '0' && *p <= '9') {
                uint64_t v = 0;
                while (*p >= '0' && *p <= '9')
                    v = v * 10 + (*p++ - '0');
                digest += v;
            } else {
                digest = digest * 31 + uint8_t(*p++);
            }
        }
    }
    for (uint64_t c : count)
        digest = digest * 1099511628211ull + c;
    printf("names %zu digest %016llx\n", names.size(), (unsigned long long)digest);
}
