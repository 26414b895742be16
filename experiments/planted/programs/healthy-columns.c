/* A query over columns: a filter by date, a sum by group. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

enum { ROWS = 2000000, GROUPS = 16 };

struct table {
	uint16_t *date;
	uint8_t *group;
	int32_t *amount;
};

int main(int argc, char **argv)
{
	int queries = argc > 1 ? atoi(argv[1]) : 500;
	struct table t = {malloc(ROWS * sizeof *t.date), malloc(ROWS), malloc(ROWS * sizeof *t.amount)};
	uint32_t x = 8;
	for (int i = 0; i < ROWS; i++) {
		x = x * 1664525 + 1013904223;
		t.date[i] = (uint16_t)(i / 400);
		t.group[i] = x >> 28;
		t.amount[i] = (int32_t)(x >> 12 & 4095) - 1000;
	}
	uint64_t digest = 0;
	for (int q = 0; q < queries; q++) {
		int64_t sum[GROUPS] = {0};
		uint16_t from = (uint16_t)(q % 100), to = (uint16_t)(5000 - q % 77);
		for (int i = 0; i < ROWS; i++)
			if (t.date[i] >= from && t.date[i] < to)
				sum[t.group[i]] += t.amount[i];
		for (int g = 0; g < GROUPS; g++)
			digest = digest * 31 + (uint64_t)sum[g];
	}
	printf("queries %d digest %016llx\n", queries, (unsigned long long)digest);
}
