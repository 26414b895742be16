// Counts the requests of each client in a hash table.
#include <cstdint>
#include <cstdio>
#include <unordered_map>

struct Session {
    std::uint64_t requests = 0, bytes = 0;
    std::uint32_t last_status = 0;
};

using Sessions = std::unordered_map<std::uint64_t, Session>;

static std::uint64_t client_of(std::uint64_t request, std::uint64_t clients) {
    std::uint64_t h = request * 0x9e3779b97f4a7c15ull;
    h ^= h >> 29;
    return h % clients * 7919;
}

static void record(Sessions &sessions, std::uint64_t client, std::uint64_t bytes) {
    Session &session = sessions[client];  // dominating object
    session.requests++;
    session.bytes += bytes;
    session.last_status = 200;
}

static std::uint64_t busiest(const Sessions &sessions) {
    std::uint64_t most = 0;
    for (const auto &[client, session] : sessions)
        if (session.requests > most) most = session.requests;
    return most;
}

int main() {
    Sessions sessions;
    const std::uint64_t clients = 100000;
    for (std::uint64_t request = 0; request < 1000000; request++)
        record(sessions, client_of(request, clients), request % 1400);
    std::printf("%zu clients, %llu at most\n", sessions.size(), (unsigned long long)busiest(sessions));
}
