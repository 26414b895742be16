/* SPDX-License-Identifier: MIT OR Apache-2.0 */
// A crowd of agents in a std::vector; a rumour runs from agent to agent. Each hop reads and writes mood_
// and follows one of friend_, which lie on different lines.
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <vector>
static uint64_t seed = 21;
static uint32_t rnd() { seed = seed * 6364136223846793005ull + 1442695040888963407ull; return seed >> 33; }
class alignas(64) Agent {
public:
    Agent(uint32_t id, uint32_t crowd) : id_(id) {
        std::memset(name_, 0, sizeof name_); std::memcpy(name_, "agent", 6);
        for (auto &g : goal_) g = id % 100;
#ifndef PROPOSED
        for (auto &f : friend_) f = rnd() % crowd;
        mood_ = rnd() % 100;
#endif
    }
#ifndef PROPOSED
    __attribute__((noinline)) uint32_t hear(uint32_t strength) {
        mood_ += strength;
        return friend_[(mood_ >> 2) & 3];
    }
    uint32_t mood() const { return mood_; }
#endif
    double goals() const { double s = 0; for (double g : goal_) s += g; return s + id_ + name_[0]; }
private:
#ifdef PROPOSED
    uint32_t id_;
    char name_[40];
    double goal_[16];
#elif !defined FIXED
    uint32_t id_;
    uint32_t mood_;
    char name_[40];
    double goal_[16];
    uint32_t friend_[4];
#else
    uint32_t mood_;
    uint32_t friend_[4];
    uint32_t id_;
    char name_[40];
    double goal_[16];
#endif
};
static_assert(sizeof(Agent) == 192, "size");
#ifdef PROPOSED
class Rumour {
public:
    explicit Rumour(uint32_t crowd) { for (auto &f : friend_) f = rnd() % crowd; mood_ = rnd() % 100; }
    __attribute__((noinline)) uint32_t hear(uint32_t strength) {
        mood_ += strength;
        return friend_[(mood_ >> 2) & 3];
    }
    uint32_t mood() const { return mood_; }
private:
    uint32_t mood_;
    uint32_t friend_[4];
};
#endif
class Crowd {
public:
#ifdef PROPOSED
    explicit Crowd(uint32_t n)
    {
        agents_.reserve(n); rumours_.reserve(n);
        for (uint32_t i = 0; i < n; i++) { agents_.emplace_back(i, n); rumours_.emplace_back(n); }
    }
    const std::vector<Rumour> &heard() const { return rumours_; }
    std::vector<Rumour> &heard() { return rumours_; }
#else
    explicit Crowd(uint32_t n) { agents_.reserve(n); for (uint32_t i = 0; i < n; i++) agents_.emplace_back(i, n); }
    const std::vector<Agent> &heard() const { return agents_; }
    std::vector<Agent> &heard() { return agents_; }
#endif
    __attribute__((noinline)) uint32_t spread(uint32_t who, int hops) {
        for (int h = 0; h < hops; h++) who = heard()[who].hear(1 + (h & 7));
        return who;
    }
    uint64_t total() const { uint64_t t = 0; for (auto &a : heard()) t = t * 3 + a.mood(); return t; }
    double goals() const { double t = 0; for (size_t i = 0; i < agents_.size(); i += 9) t += agents_[i].goals(); return t; }
private:
    std::vector<Agent> agents_;
#ifdef PROPOSED
    std::vector<Rumour> rumours_;
#endif
};
int main(int argc, char **argv)
{
    int rounds = argc > 1 ? atoi(argv[1]) : 140;
    const uint32_t n = 8192;
    Crowd crowd(n);
    uint64_t sum = 0;
    for (int r = 0; r < rounds; r++) sum += crowd.spread(rnd() % n, 25000);
    std::printf("%llu %llu %.1f\n", (unsigned long long)sum, (unsigned long long)crowd.total(), crowd.goals());
    return 0;
}
