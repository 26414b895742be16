// A lexer and constant folder over generated source text: branchy, small data.
#include <cstdio>
#include <cstdint>
#include <string>
int main() {
    std::string src;
    uint32_t s = 3;
    auto rnd = [&] { s ^= s << 13; s ^= s >> 17; s ^= s << 5; return s; };
    for (int i = 0; i < 60000; i++) {
        switch (rnd() % 5) {
        case 0: src += "let v" + std::to_string(rnd() % 1000) + " = "; break;
        case 1: src += std::to_string(rnd() % 100000) + " + "; break;
        case 2: src += "(a*b) "; break;
        case 3: src += "\"text " + std::to_string(i) + "\";\n"; break;
        default: src += "// note\n";
        }
    }
    uint64_t idents = 0, nums = 0, strs = 0, ops = 0, comments = 0, acc = 0;
    for (int pass = 0; pass < 700; pass++) {
        size_t i = 0, n = src.size();
        while (i < n) {
            char c = src[i];
            if ((c >= 'a' && c <= 'z')) {
                uint32_t h = 0;
                while (i < n && ((src[i] >= 'a' && src[i] <= 'z') || (src[i] >= '0' && src[i] <= '9')))
                    h = h * 31 + src[i++];
                idents++;
                acc += h;
            }
            else if (c >= '0' && c <= '9') {
                uint64_t v = 0;
                while (i < n && src[i] >= '0' && src[i] <= '9')
                    v = v * 10 + (src[i++] - '0');
                nums++;
                acc ^= v;
            }
            else if (c == '"') { i++; while (i < n && src[i] != '"') i++; i++; strs++; }
            else if (c == '/' && i + 1 < n && src[i + 1] == '/') { while (i < n && src[i] != '\n') i++; comments++; }
            else { if (c == '+' || c == '*' || c == '=') ops++; i++; }
        }
    }
    std::printf("%lu %lu %lu %lu %lu %lx\n", idents, nums, strs, ops, comments, acc);
}
