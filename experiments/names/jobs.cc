// Jobs in a list, sorted by deadline, then aged again and again.
#include <cstdint>
#include <cstdio>
#include <functional>
#include <list>

struct Job {
    std::uint32_t deadline;
    std::uint32_t waited;
    std::uint64_t payload[3];
};

static void read_deadlines(int n, const std::function<void(std::uint32_t)> &each) {
    std::uint32_t random = 2463534242u;
    for (int i = 0; i < n; i++) {
        random ^= random << 13, random ^= random >> 17, random ^= random << 5;
        each(random);
    }
}

class Scheduler {
    std::list<Job> jobs;

public:
    void load(int n) {
        read_deadlines(n, [this](std::uint32_t deadline) {
            jobs.push_back(Job{deadline, 0, {deadline, 1, 2}});  // dominating object
        });
        jobs.sort([](const Job &a, const Job &b) { return a.deadline < b.deadline; });
    }

    std::uint64_t age() {
        std::uint64_t sum = 0;
        for (Job &job : jobs) sum += ++job.waited * job.payload[1];
        return sum;
    }
};

int main() {
    Scheduler scheduler;
    scheduler.load(50000);
    std::uint64_t sum = 0;
    for (int tick = 0; tick < 60; tick++) sum += scheduler.age();
    std::printf("%llu\n", (unsigned long long)sum);
}
