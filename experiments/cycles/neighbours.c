/* SPDX-License-Identifier: MIT OR Apache-2.0
 *
 * Lines that neighbours of a virtual machine push out of the last level. Walks come back to each line of a buffer after
 * equal times, which the buffer's size and a pause behind each load set, or at random. A share of the loads goes to
 * memory. It grows with the time, and slowly, as if each set had neighbours of its own: beside it stands what sets lose
 * whose rates are spread exponentially, 1 - exp(-t / waited), with one t for all walks, the median of those that 20% to
 * 80% of the lines miss. The last row is how many of the lines that a turn missed had been missed in the turn before:
 * their share of all lines where luck decides, all where the place does.
 *
 *   cc -O2 -o neighbours neighbours.c && ./neighbours
 */
#define _GNU_SOURCE
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <x86intrin.h>

enum { LINE = 64 };
#define LARGE_PAGE (2ul << 20)
/* Time-stamp cycles from which on a load went to memory, fences included. */
#define MEMORY_CYCLES 190
#define LEAST_CYCLES 3e9

struct walk {
	double mib;
	uint64_t pause;
	int is_random;
	double turn_cycles, missed, again;
};

static uint64_t state = 1;

static size_t below(size_t count)
{
	state = state * 6364136223846793005u + 1442695040888963407u;
	return (state >> 33) % count;
}

static uint64_t load_cycles(const char *at)
{
	_mm_lfence();
	uint64_t begun = __rdtsc();
	_mm_lfence();
	(void)*(const volatile char *)at;
	_mm_lfence();
	return __rdtsc() - begun;
}

static void take(struct walk *walk)
{
	size_t bytes = walk->mib * (1 << 20), lines = bytes / LINE;
	char *mapped = mmap(NULL, bytes + LARGE_PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	uint32_t *order = malloc(lines * sizeof *order);
	char *was_missed = calloc(lines, 1);
	if (mapped == MAP_FAILED || !order || !was_missed)
		exit(2);
	char *memory = (char *)(((uintptr_t)mapped + LARGE_PAGE - 1) & ~(LARGE_PAGE - 1));
	madvise(memory, bytes, MADV_HUGEPAGE);
	memset(memory, 0, bytes);
	for (size_t i = 0; i < lines; i++)
		order[i] = i;
	for (size_t i = lines - 1; i > 0; i--) {
		size_t other = below(i + 1);
		uint32_t kept = order[i];
		order[i] = order[other];
		order[other] = kept;
	}
	size_t missed = 0, again = 0, loads = 0;
	uint64_t begun = 0;
	/* The first turn brings the lines in, and the second one shows which are missed. */
	for (size_t turn = 0; turn < 4 || __rdtsc() - begun < LEAST_CYCLES; turn++) {
		if (turn == 2)
			begun = __rdtsc(), missed = again = loads = 0;
		for (size_t i = 0; i < lines; i++, loads++) {
			size_t line = walk->is_random ? below(lines) : order[i];
			int is_missed = load_cycles(memory + line * LINE) > MEMORY_CYCLES;
			missed += is_missed;
			again += is_missed && was_missed[line];
			was_missed[line] = is_missed;
			for (uint64_t end = __rdtsc() + walk->pause; walk->pause && __rdtsc() < end;)
				;
		}
	}
	walk->turn_cycles = (double)(__rdtsc() - begun) * lines / loads;
	walk->missed = (double)missed / loads;
	walk->again = (double)again / (missed ? missed : 1);
	free(was_missed);
	free(order);
	munmap(mapped, bytes + LARGE_PAGE);
}

/* Share of the lines that are lost: `ratio` is t / waited, the mean of it where loads come at random. */
static double lost(double ratio, int is_random)
{
	if (!is_random)
		return exp(-ratio);
	double sum = 0;
	enum { STEPS = 1000 };
	for (int i = 0; i < STEPS; i++)
		sum += exp(ratio / log1p(-(i + 0.5) / STEPS));
	return sum / STEPS;
}

static int compared(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;
	return (x > y) - (x < y);
}

int main(void)
{
	static struct walk walks[] = {
		{ 2.5, 0, 0 },  { 2.5, 500, 0 },  { 2.5, 1500, 0 }, { 4, 0, 0 },     { 4, 300, 0 },    { 4, 1500, 0 },
		{ 6, 0, 0 },    { 6, 300, 0 },    { 8, 0, 0 },      { 12, 0, 0 },    { 2.5, 0, 1 },    { 2.5, 500, 1 },
		{ 2.5, 1500, 1 }, { 6, 0, 1 },    { 6, 300, 1 },
	};
	enum { COUNT = sizeof walks / sizeof *walks };
	double times[COUNT];
	size_t known = 0;
	for (size_t i = 0; i < COUNT; i++) {
		take(&walks[i]);
		if (!walks[i].is_random && walks[i].missed > 0.2 && walks[i].missed < 0.8)
			times[known++] = -log(walks[i].missed) * walks[i].turn_cycles;
	}
	qsort(times, known, sizeof *times, compared);
	double t = known ? times[known / 2] : 0;
	printf("t: %.1f million time-stamp cycles\n", t / 1e6);
	for (size_t i = 0; i < COUNT; i++)
		printf("%4.1f MiB, %s, a turn of %5.1f million cycles: %3.0f%% go to memory, %3.0f%% by the law; of these %3.0f%% did before\n",
		       walks[i].mib, walks[i].is_random ? "at random" : "in turn  ", walks[i].turn_cycles / 1e6,
		       100 * walks[i].missed, 100 * lost(t / walks[i].turn_cycles, walks[i].is_random), 100 * walks[i].again);
}
