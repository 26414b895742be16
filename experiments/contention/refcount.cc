// SPDX-License-Identifier: MIT OR Apache-2.0
#include <cstdint>
#include <cstdio>
#include <memory>
#include <thread>
#include <vector>

constexpr int threads = 4;
constexpr int rounds = 2500000;

struct Document {
	uint64_t scale;
	uint64_t words[6];
};

#ifdef TWIN
using Handle = const std::shared_ptr<Document> &;
#else
using Handle = std::shared_ptr<Document>;
#endif

__attribute__((noinline)) static uint64_t score(Handle doc, uint64_t x)
{
	for (int k = 0; k < 16; k++)
		x = x * 6364136223846793005u + doc->scale;
	return x + doc->words[x % 6];
}

int main()
{
	auto doc = std::make_shared<Document>();
	doc->scale = 1442695040888963407u;
	uint64_t out[threads];
	std::vector<std::thread> pool;
	for (int i = 0; i < threads; i++)
		pool.emplace_back([&, i] {
			uint64_t x = i;
			for (int r = 0; r < rounds; r++)
				x = score(doc, x);
			out[i] = x;
		});
	for (auto &t : pool)
		t.join();
	uint64_t sum = 0;
	for (uint64_t v : out)
		sum ^= v;
	std::printf("%lx\n", (unsigned long)sum);
}
