/* An index of a small database: pages of a tree in the frames of a buffer pool; references are followed from key to key. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { PAGE = 4096, SLOTS = 250, FILL = 180, KEYS = 360000 };

struct page {
	uint32_t count, level;
	uint64_t changed;
	uint32_t pins, reads;
	uint64_t key[SLOTS];
	uint64_t value[SLOTS];
};

struct pool {
	char *memory;
	size_t pitch;
	uint32_t used, frames;
};

static struct pool pool;

static void pool_open(uint32_t frames)
{
	pool.pitch = PAGE;
	pool.frames = frames;
	pool.memory = aligned_alloc(PAGE, (pool.pitch * frames + PAGE - 1) / PAGE * PAGE);
	if (!pool.memory)
		abort();
}

static inline struct page *page(uint32_t at)
{
	return (struct page *)(pool.memory + at * pool.pitch);
}

static uint32_t page_new(uint32_t level)
{
	if (pool.used == pool.frames)
		abort();
	struct page *p = page(pool.used);
	memset(p, 0, sizeof *p);
	p->level = level;
	return pool.used++;
}

static int ascending(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
	return x < y ? -1 : x > y;
}

/* Rows arrive in the order of their dates; the index is built from sorted keys, level by level. */
static uint32_t load(uint64_t *keys, int days)
{
	uint64_t x = 6;
	for (int d = 0; d < days; d++) {
		for (uint32_t i = d ? KEYS / 2 : 0; i < KEYS; i++) {
			x = x * 6364136223846793005ull + 1442695040888963407ull;
			keys[i] = x >> 8;
		}
		qsort(keys, KEYS, sizeof *keys, ascending);
	}
	uint32_t first = pool.used, n = 0;
	for (uint32_t i = 0; i < KEYS; i++) {
		if (i % FILL == 0)
			page_new(0);
		struct page *p = page(pool.used - 1);
		p->key[p->count] = keys[i];
		p->value[p->count++] = keys[(i * 2654435761u) % (KEYS / 90) * 90];
	}
	for (uint32_t level = 1; (n = pool.used - first) > 1; level++) {
		uint32_t begin = first;
		first = pool.used;
		for (uint32_t i = 0; i < n; i++) {
			if (i % FILL == 0)
				page_new(level);
			struct page *p = page(pool.used - 1);
			p->key[p->count] = page(begin + i)->key[0];
			p->value[p->count++] = begin + i;
		}
	}
	return first;
}

static uint64_t find(uint32_t root, uint64_t key)
{
	uint32_t at = root;
	for (;;) {
		struct page *p = page(at);
		p->reads++;
		uint32_t low = 0, size = p->count;
		while (size > 1) {
			uint32_t half = size / 2;
			low += p->key[low + half] <= key ? half : 0;
			size -= half;
		}
		if (!p->level)
			return p->key[low] == key ? p->value[low] : 0;
		at = (uint32_t)p->value[low];
	}
}

int main(int argc, char **argv)
{
	int requests = argc > 1 ? atoi(argv[1]) : 5500000;
	uint64_t *keys = malloc(KEYS * sizeof *keys);
	pool_open(2100);
	uint32_t root = load(keys, argc > 2 ? atoi(argv[2]) : 8);
	uint64_t next = keys[0], digest = 0;
	for (int r = 0; r < requests; r++) {
		next = find(root, r & 15 ? next : keys[r % (KEYS / 90) * 90]);
		digest = digest * 31 + next;
	}
	uint64_t reads = 0;
	for (uint32_t i = 0; i < pool.used; i++)
		reads += page(i)->reads * (uint64_t)(i % 7 + 1);
	printf("pages %u reads %llu digest %016llx\n", pool.used, (unsigned long long)reads, (unsigned long long)digest);
}
