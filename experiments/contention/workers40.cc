// SPDX-License-Identifier: MIT OR Apache-2.0
#include <cstdint>
#include <cstdio>
#include <thread>
#include <vector>

constexpr int threads = 4;
constexpr int rounds = 1000000;

struct
#ifdef TWIN
alignas(64)
#endif
Worker {
	volatile uint64_t jobs = 0;
	volatile uint64_t bytes = 0;
	volatile uint64_t errors = 0;
	volatile uint64_t state = 1;
	volatile uint64_t busy = 0;

	void run()
	{
		for (int i = 0; i < rounds; i++) {
			uint64_t x = state;
			for (int k = 0; k < 150; k++)
				x = x * 6364136223846793005u + 1442695040888963407u;
			state = x;
			jobs = jobs + 1;
			bytes = bytes + (x >> 50);
			busy = x & 1;
		}
	}
};

int main()
{
	std::vector<Worker> workers(threads);
	std::vector<std::thread> pool;
	for (auto &w : workers)
		pool.emplace_back([&w] { w.run(); });
	for (auto &t : pool)
		t.join();
	uint64_t sum = 0;
	for (auto &w : workers)
		sum += w.jobs + w.bytes;
	std::printf("%lx\n", (unsigned long)sum);
}
