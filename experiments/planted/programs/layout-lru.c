/* A cache of rendered fragments: hash chains to find them, a list to evict the least recently used. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct entry {
	uint64_t key;
	char fragment[88];
	struct entry *newer;
	char etag[56];
	struct entry *older;
	char origin[136];
	uint32_t hits;
	uint32_t size;
	struct entry *chain;
};

enum { CAPACITY = 30000, BUCKETS = 1 << 13, KEYS = 36000 };

static struct entry *bucket[BUCKETS], *newest, *oldest, *pool;
static uint32_t used;

static inline uint32_t slot(uint64_t key)
{
	return (uint32_t)(key * 0x9E3779B97F4A7C15ull >> 51);
}

static void unlink_entry(struct entry *e)
{
	if (e->newer)
		e->newer->older = e->older;
	else
		newest = e->older;
	if (e->older)
		e->older->newer = e->newer;
	else
		oldest = e->newer;
}

static void push(struct entry *e)
{
	e->newer = 0;
	e->older = newest;
	if (newest)
		newest->newer = e;
	else
		oldest = e;
	newest = e;
}

static struct entry *find(uint64_t key)
{
	for (struct entry *e = bucket[slot(key)]; e; e = e->chain)
		if (e->key == key)
			return e;
	return 0;
}

static struct entry *replace(uint64_t key)
{
	struct entry *e;
	if (used < CAPACITY) {
		e = &pool[used++];
	} else {
		e = oldest;
		unlink_entry(e);
		struct entry **p = &bucket[slot(e->key)];
		while (*p != e)
			p = &(*p)->chain;
		*p = e->chain;
	}
	e->key = key;
	e->hits = 0;
	e->size = (uint32_t)key & 63;
	memset(e->fragment, (int)key, e->size);
	e->chain = bucket[slot(key)];
	bucket[slot(key)] = e;
	push(e);
	return e;
}

int main(int argc, char **argv)
{
	int requests = argc > 1 ? atoi(argv[1]) : 8000000;
	pool = aligned_alloc(64, sizeof *pool * CAPACITY);
	memset(pool, 0, sizeof *pool * CAPACITY);
	uint64_t x = 17, hit = 0, digest = 0;
	for (int i = 0; i < requests; i++) {
		x = x * 6364136223846793005ull + 1442695040888963407ull;
		uint64_t key = x >> 34 & 3 ? (x >> 36) % (KEYS * 3 / 4) : (x >> 36) % KEYS;
		struct entry *e = find(key);
		if (e) {
			hit++;
			e->hits++;
			unlink_entry(e);
			push(e);
		} else {
			e = replace(key);
		}
		digest = digest * 31 + e->hits;
		x ^= e->size;
	}
	printf("requests %d hits %llu digest %016llx\n", requests, (unsigned long long)hit, (unsigned long long)digest);
}
