// Invoicing on flat rows: the tariff is copied into each order's row once.
#include <cstdint>
#include <cstdio>
#include <vector>

struct Row { uint32_t quantity, day; uint64_t cents; uint64_t notes[2]; };

static uint64_t seed = 42;
static uint32_t rnd()
{
    seed = seed * 6364136223846793005ull + 1442695040888963407ull;
    return uint32_t(seed >> 32);
}

static uint64_t compound(uint32_t start)
{
    double v = 100 + start % 1000;
    for (int month = 0; month < 120; month++)
        v += v / (150 + month) - 0.25;
    return uint64_t(v);
}

constexpr uint32_t kOrders = 350000, kCustomers = 150000;

static uint64_t invoice_by_rows(const std::vector<Row> &orders, uint32_t day)
{
    uint64_t total = 0;
    for (const Row &o : orders) {
        if (o.cents & 1)
            total += o.quantity * o.cents;
        else
            total ^= o.quantity + day;
    }
    return total;
}

int main()
{
    // The levels are joined one after the other, so that each join is a plain gather.
    std::vector<uint64_t> cents(kCustomers), contract(kCustomers), current(kCustomers), customer(kCustomers);
    std::vector<Row> store(kOrders), orders(kOrders);
    for (auto &c : cents)
        c = compound(rnd());
    for (auto &c : contract)
        c = cents[rnd() % kCustomers];
    for (auto &c : current)
        c = contract[rnd() % kCustomers];
    for (auto &c : customer)
        c = current[rnd() % kCustomers];
    for (auto &o : store) {
        o.quantity = 1 + rnd() % 100;
        o.cents = customer[rnd() % kCustomers];
    }
    for (auto &o : orders)
        o = store[rnd() % kOrders];
    uint64_t sum = 0;
    for (uint32_t day = 0; day < 14; day++)
        sum = sum * 3 + invoice_by_rows(orders, day);
    std::printf("%016llx\n", (unsigned long long)sum);
}
