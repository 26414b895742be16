// Invoicing: order -> customer -> contract -> tariff, each an object of its own.
#include <cstdint>
#include <cstdio>
#include <memory>
#include <vector>

struct Tariff { uint64_t cents; uint64_t history[3]; };
struct Contract { uint64_t number; Tariff *tariff; uint64_t terms[4]; };
struct Customer { char name[40]; Contract **contract; };
struct Order { uint32_t quantity, day; Customer *customer; uint64_t notes[2]; };

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

static uint64_t invoice_by_pointers(const std::vector<Order *> &orders, uint32_t day)
{
    uint64_t total = 0;
    for (const Order *o : orders) {
        const Contract *c = *o->customer->contract;
        if (c->tariff->cents & 1)
            total += o->quantity * c->tariff->cents;
        else
            total ^= o->quantity + day;
    }
    return total;
}

int main()
{
    std::vector<Tariff> tariffs(kCustomers);
    std::vector<Contract> contracts(kCustomers);
    std::vector<Contract *> current(kCustomers);
    std::vector<Customer> customers(kCustomers);
    std::vector<Order> store(kOrders);
    std::vector<Order *> orders(kOrders);
    for (uint32_t i = 0; i < kCustomers; i++)
        tariffs[i].cents = compound(rnd());
    for (uint32_t i = 0; i < kCustomers; i++)
        contracts[i].tariff = &tariffs[rnd() % kCustomers];
    for (uint32_t i = 0; i < kCustomers; i++)
        current[i] = &contracts[rnd() % kCustomers];
    for (uint32_t i = 0; i < kCustomers; i++)
        customers[i].contract = &current[rnd() % kCustomers];
    for (uint32_t i = 0; i < kOrders; i++) {
        store[i].quantity = 1 + rnd() % 100;
        store[i].customer = &customers[rnd() % kCustomers];
    }
    for (uint32_t i = 0; i < kOrders; i++)
        orders[i] = &store[rnd() % kOrders];
    uint64_t sum = 0;
    for (uint32_t day = 0; day < 14; day++)
        sum = sum * 3 + invoice_by_pointers(orders, day);
    std::printf("%016llx\n", (unsigned long long)sum);
}
