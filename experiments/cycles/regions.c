/* SPDX-License-Identifier: MIT OR Apache-2.0
 *
 * Cores that fetch what lies around a missed line. First, pairs of loads in random places, the second one so many lines
 * from the first, each waiting for the load before: a second line that comes along costs hardly more than the first
 * alone. Then chases through lines in random order within 4 MiB, and the same lines 128 bytes apart: a chase comes to a
 * line's neighbour soon, and finds it near where it came along. The least of several rounds, in cycles; a cycle is a
 * third of a multiplication.
 *
 *   cc -O2 -o regions regions.c && ./regions
 */
#define _GNU_SOURCE
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>

enum { LINE = 64, ROUNDS = 9, VISITS = 20000, LOADS = 1 << 15 };
#define BYTES (256ul << 20)
#define LARGE_PAGE (2ul << 20)
#define GROUP (4ul << 20)

static char *memory;
static uint64_t state = 1;

static double now_ns(void)
{
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * 1e9 + t.tv_nsec;
}

static size_t below(size_t count)
{
	state = state * 6364136223846793005u + 1442695040888963407u;
	return (state >> 33) % count;
}

static double cycle_ns(void)
{
	double least = 1e30;
	for (int round = 0; round < ROUNDS; round++) {
		uint64_t x = 3, begun = now_ns();
		for (int i = 0; i < 1000000; i++)
			asm volatile("imul %0, %0" : "+r"(x));
		double ns = (now_ns() - begun) / 3e6;
		least = ns < least ? ns : least;
	}
	return least;
}

/* Nanoseconds of a visit; 0 lines: of one load alone. */
static double pairs(long lines, uint64_t no_bit)
{
	static uint32_t places[VISITS];
	double least = 1e30;
	for (int round = 0; round < ROUNDS; round++) {
		for (int i = 0; i < VISITS; i++)
			places[i] = below(BYTES / LINE / 32) * 32 + 16;
		double begun = now_ns();
		uint64_t read = 0;
		for (int i = 0; i < VISITS; i++) {
			char *first = memory + (size_t)places[i] * LINE;
			read = *(uint64_t *)(first + (read & no_bit));
			if (lines)
				read = *(uint64_t *)(first + lines * LINE + (read & no_bit));
		}
		double ns = (now_ns() - begun) / VISITS;
		asm volatile("" ::"r"(read));
		least = ns < least ? ns : least;
	}
	return least;
}

/* Nanoseconds of a load of a chase through lines so many bytes apart, random within each group. */
static double chase(size_t apart)
{
	size_t count = BYTES / apart, of_a_group = GROUP / apart;
	uint32_t *order = malloc(count * sizeof *order);
	if (!order)
		exit(2);
	for (size_t i = 0; i < count; i++)
		order[i] = i;
	for (size_t first = 0; first < count; first += of_a_group) {
		for (size_t i = of_a_group - 1; i > 0; i--) {
			size_t other = first + below(i + 1);
			uint32_t kept = order[first + i];
			order[first + i] = order[other];
			order[other] = kept;
		}
	}
	for (size_t i = 0; i < count; i++)
		*(char **)(memory + order[i] * apart) = memory + order[(i + 1) % count] * apart;
	char *at = memory + order[0] * apart;
	free(order);
	double least = 1e30;
	for (int round = 0; round < 6 * ROUNDS; round++) {
		double begun = now_ns();
		for (int i = 0; i < LOADS; i++)
			at = *(char **)at;
		double ns = (now_ns() - begun) / LOADS;
		asm volatile("" ::"r"(at));
		least = ns < least ? ns : least;
	}
	return least;
}

int main(void)
{
	static const long distances[] = { 1, 2, 3, 4, 5, 6, 8, 12 };
	char *mapped = mmap(NULL, BYTES + LARGE_PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (mapped == MAP_FAILED)
		return 2;
	memory = (char *)(((uintptr_t)mapped + LARGE_PAGE - 1) & ~(LARGE_PAGE - 1));
	madvise(memory, BYTES, MADV_HUGEPAGE);
	memset(memory, 0, BYTES);
	volatile uint64_t zero = 0;
	double cycle = cycle_ns(), alone = pairs(0, zero);
	printf("a load in a random place: %.0f cycles\n", alone / cycle);
	for (size_t i = 0; i < sizeof distances / sizeof *distances; i++)
		printf("and one %2ld lines behind it: %.0f, before it: %.0f\n", distances[i], pairs(distances[i], zero) / cycle,
		       pairs(-distances[i], zero) / cycle);
	printf("a chase through lines of 64 bytes: %.0f, 128 bytes apart: %.0f\n", chase(64) / cycle, chase(128) / cycle);
}
