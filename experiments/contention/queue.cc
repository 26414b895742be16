// SPDX-License-Identifier: MIT OR Apache-2.0
#include <atomic>
#include <cstdint>
#include <cstdio>
#include <sched.h>
#include <thread>

constexpr uint64_t items = 8000000;
constexpr uint64_t capacity = 1024;

struct alignas(64) Queue {
	std::atomic<uint64_t> head{0};
#ifdef TWIN
	uint64_t seen_tail = 0;
	alignas(64)
#endif
	std::atomic<uint64_t> tail{0};
#ifdef TWIN
	uint64_t seen_head = 0;
#endif
	alignas(64) uint64_t slots[capacity];

	bool push(uint64_t v)
	{
		uint64_t t = tail.load(std::memory_order_relaxed);
#ifdef TWIN
		if (t - seen_head == capacity) {
			seen_head = head.load(std::memory_order_acquire);
			if (t - seen_head == capacity)
				return false;
		}
#else
		if (t - head.load(std::memory_order_acquire) == capacity)
			return false;
#endif
		slots[t % capacity] = v;
		tail.store(t + 1, std::memory_order_release);
		return true;
	}

	bool pop(uint64_t &v)
	{
		uint64_t h = head.load(std::memory_order_relaxed);
#ifdef TWIN
		if (h == seen_tail) {
			seen_tail = tail.load(std::memory_order_acquire);
			if (h == seen_tail)
				return false;
		}
#else
		if (h == tail.load(std::memory_order_acquire))
			return false;
#endif
		v = slots[h % capacity];
		head.store(h + 1, std::memory_order_release);
		return true;
	}
};

static Queue queue;

static uint64_t mix(uint64_t x, int n)
{
	while (n--)
		x = x * 6364136223846793005u + 1442695040888963407u;
	return x;
}

template <class F> static void until(F attempt)
{
	for (int tries = 0; !attempt(); )
		if (++tries == 200) {
			sched_yield();
			tries = 0;
		}
}

int main()
{
	std::thread producer([] {
		uint64_t x = 1;
		for (uint64_t i = 0; i < items; i++) {
			x = mix(x, 16);
			until([&] { return queue.push(x); });
		}
	});
	uint64_t sum = 0;
	for (uint64_t i = 0; i < items; i++) {
		uint64_t v;
		until([&] { return queue.pop(v); });
		sum += mix(v, 16);
	}
	producer.join();
	std::printf("%lx\n", (unsigned long)sum);
}
