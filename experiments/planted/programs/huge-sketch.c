/* Heavy hitters of a stream of addresses: a count-min sketch with four rows, updated conservatively. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { ROWS = 4, BITS = 22 };

struct sketch {
	uint32_t *row[ROWS];
};

static uint32_t *row_new(void)
{
	size_t bytes = sizeof(uint32_t) << BITS;
	uint32_t *row = aligned_alloc(2u << 20, bytes);
	if (!row)
		abort();
	memset(row, 0, bytes);
	return row;
}

static uint32_t add(struct sketch *s, uint64_t key)
{
	uint32_t at[ROWS], least = UINT32_MAX;
	uint64_t h = key * 0x9E3779B97F4A7C15ull;
	for (int r = 0; r < ROWS; r++) {
		h = (h ^ (h >> 32)) * 0xD6E8FEB86659FD93ull;
		at[r] = (uint32_t)(h >> (64 - BITS));
		if (s->row[r][at[r]] < least)
			least = s->row[r][at[r]];
	}
	for (int r = 0; r < ROWS; r++)
		if (s->row[r][at[r]] == least)
			s->row[r][at[r]]++;
	return least + 1;
}

int main(int argc, char **argv)
{
	uint64_t n = argc > 1 ? strtoull(argv[1], 0, 0) : 40000000;
	struct sketch s;
	for (int r = 0; r < ROWS; r++)
		s.row[r] = row_new();
	uint64_t x = 11, heavy = 0, digest = 0;
	for (uint64_t i = 0; i < n; i++) {
		x = x * 6364136223846793005ull + 1442695040888963407ull;
		/* most traffic has few sources */
		uint64_t source = x >> 59 ? (x >> 40) % 4000 : x >> 32;
		uint32_t seen = add(&s, source);
		if ((seen & 1023) == 0) {
			heavy++;
			digest = digest * 31 + source + seen;
		}
	}
	printf("packets %llu heavy %llu digest %016llx\n", (unsigned long long)n, (unsigned long long)heavy, (unsigned long long)digest);
}
