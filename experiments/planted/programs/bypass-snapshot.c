/* Agents trade; each day's state goes to a history that is kept for a later replay. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <emmintrin.h>

enum { AGENTS = 40960, DAYS = 48 };

struct agent {
	int32_t cash, goods;
	uint32_t trades, mood;
	uint64_t memory[2];
};

static struct agent *town;
static char *history;

static void archive(char *to, const struct agent *from, size_t bytes)
{
	memcpy(to, from, bytes);
}

static uint32_t day(uint32_t x, int trades)
{
	for (int i = 0; i < trades; i++) {
		x = x * 1664525 + 1013904223;
		struct agent *a = &town[(x >> 8) % AGENTS];
		uint32_t other = (uint32_t)(a->memory[0] + x) % AGENTS;
		struct agent *b = &town[other];
		int32_t price = 10 + (int32_t)((a->mood ^ b->mood) & 7);
		if (b->cash > price && a->goods > 0) {
			a->cash += price;
			b->cash -= price;
			a->goods--;
			b->goods++;
			a->trades++;
		} else {
			a->mood++;
		}
		a->memory[1] = a->memory[0] + b->trades;
		a->memory[0] = other * 2654435761u;
		x ^= (uint32_t)b->memory[1];
	}
	return x;
}

int main(int argc, char **argv)
{
	int days = argc > 1 ? atoi(argv[1]) : 1000;
	size_t bytes = AGENTS * sizeof(struct agent);
	town = aligned_alloc(4096, (bytes + 4095) / 4096 * 4096);
	history = aligned_alloc(4096, bytes * DAYS);
	memset(history, 0, bytes * DAYS);
	for (int i = 0; i < AGENTS; i++)
		town[i] = (struct agent){100, 5, 0, (uint32_t)i * 7u, {(uint64_t)i * 2654435761u, 0}};
	uint32_t x = 1;
	for (int d = 0; d < days; d++) {
		x = day(x, 28000);
		archive(history + (size_t)(d % DAYS) * bytes, town, bytes);
	}
	uint64_t digest = x;
	for (size_t i = 0; i < bytes * DAYS; i += 8) {
		uint64_t v;
		memcpy(&v, history + i, 8);
		digest = (digest ^ v) * 1099511628211ull;
	}
	printf("days %d digest %016llx\n", days, (unsigned long long)digest);
}
