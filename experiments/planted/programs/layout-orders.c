/* End of day: risk is computed from the open orders again and again, at other prices. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct order {
	uint64_t id;
	char client[40];
	char venue[12];
	uint32_t flags;
	int64_t price;
	char note[64];
	int32_t quantity;
	uint16_t instrument;
	uint16_t desk;
	uint64_t created, changed;
	char reference[24];
};

struct book {
	struct order *orders;
	size_t count;
};

enum { OPEN = 1, SELL = 2, INSTRUMENTS = 64 };

static void book_fill(struct book *b, size_t n)
{
	b->orders = calloc(n, sizeof *b->orders);
	b->count = n;
	uint32_t x = 2024;
	for (size_t i = 0; i < n; i++) {
		struct order *o = &b->orders[i];
		x = x * 1664525 + 1013904223;
		o->id = 1000000 + i;
		snprintf(o->client, sizeof o->client, "client %u", x % 5000);
		memcpy(o->venue, "XETR", 5);
		o->flags = (x >> 28 ? OPEN : 0) | (x >> 9 & SELL);
		o->price = 5000 + (x >> 8) % 2000;
		o->quantity = 1 + (x >> 5) % 900;
		o->instrument = (x >> 20) % INSTRUMENTS;
		o->desk = x % 7;
		o->created = i;
		o->changed = i + x % 1000;
	}
}

static int64_t exposure(const struct book *b, const int64_t *mark)
{
	int64_t total = 0;
	for (size_t i = 0; i < b->count; i++) {
		const struct order *o = &b->orders[i];
		if (!(o->flags & OPEN))
			continue;
		int64_t edge = (mark[o->instrument] - o->price) * o->quantity;
		total += o->flags & SELL ? -edge : edge;
	}
	return total;
}

static uint64_t audit(const struct book *b)
{
	uint64_t h = 0;
	for (size_t i = 0; i < b->count; i++)
		h = h * 31 + b->orders[i].id + b->orders[i].changed + (unsigned char)b->orders[i].client[8];
	return h;
}

int main(int argc, char **argv)
{
	int scenarios = argc > 1 ? atoi(argv[1]) : 800;
	struct book b;
	book_fill(&b, 100000);
	int64_t mark[INSTRUMENTS], worst = 0;
	for (int s = 0; s < scenarios; s++) {
		for (int i = 0; i < INSTRUMENTS; i++)
			mark[i] = 5900 + (s * 37 + i * 11) % 400;
		int64_t e = exposure(&b, mark);
		if (e < worst)
			worst = e;
	}
	printf("scenarios %d worst %lld audit %016llx\n", scenarios, (long long)worst, (unsigned long long)audit(&b));
}
