/* A collector: marks what the roots reach, counts the rest, and lets a mutator run in between. */
#define _GNU_SOURCE
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

struct object {
	uint32_t mark, kind;
	uint32_t ref[2]; /* in units of 64 bytes from the heap's begin */
	uint32_t size;
	uint32_t next;
	unsigned char data[];
};

enum { UNIT = 64, UNITS = 1 << 20, OBJECTS = 18000, ROOTS = 256, KINDS = 60000 };

static char *heap;
static uint32_t roots[ROOTS], place[OBJECTS], *stack, epoch;
static uint32_t *kinds;

static inline struct object *object(uint32_t at)
{
	return (struct object *)(heap + (size_t)at * UNIT);
}

static uint64_t seed = 99;
static uint32_t rnd(void)
{
	seed = seed * 6364136223846793005ull + 1442695040888963407ull;
	return (uint32_t)(seed >> 33);
}

/* The class table: names are made, hashed, and ordered by their hash. */
static int by_hash(const void *a, const void *b)
{
	uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
	return x < y ? -1 : x > y;
}

static uint32_t load_classes(int rounds)
{
	kinds = malloc(KINDS * sizeof *kinds);
	uint32_t digest = 0;
	for (int r = 0; r < rounds; r++) {
		for (uint32_t i = 0; i < KINDS; i++) {
			char name[40];
			int n = snprintf(name, sizeof name, "org.app%d.Class%u", r, i);
			uint32_t h = 2166136261u;
			for (int k = 0; k < n; k++)
				h = (h ^ (unsigned char)name[k]) * 16777619u;
			kinds[i] = h;
		}
		qsort(kinds, KINDS, sizeof *kinds, by_hash);
		digest = digest * 31 + kinds[KINDS / 2];
	}
	return digest;
}

static void map_heap(void)
{
	size_t bytes = (size_t)UNITS * UNIT, align = 2u << 20;
	char *p = mmap(0, bytes + align, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (p == MAP_FAILED)
		abort();
	p += -(uintptr_t)p & (align - 1);
	heap = p;
}

/* Objects of 1 to 6 KiB, one after another: buffers, rows, pictures, with few references. */
static void allocate(void)
{
	uint32_t at = 1, n = 0;
	while (n < OBJECTS) {
		if (at + 100 > UNITS)
			abort();
		struct object *o = object(at);
		place[n++] = at;
		o->size = 16 + rnd() % 73;
		o->kind = kinds[rnd() % KINDS];
		memset(o->data, (int)n, o->size * UNIT - sizeof *o);
		o->next = at + o->size;
		at = o->next;
	}
	for (uint32_t i = 0; i < n; i++)
		for (int k = 0; k < 2; k++)
			object(place[i])->ref[k] = rnd() % 9 ? place[rnd() % n] : 0;
	for (int i = 0; i < ROOTS; i++)
		roots[i] = place[rnd() % n];
	object(place[n - 1])->next = 0;
}

static uint32_t mark(void)
{
	uint32_t n = 0, live = 0;
	epoch++;
	for (int i = 0; i < ROOTS; i++)
		stack[n++] = roots[i];
	while (n) {
		struct object *o = object(stack[--n]);
		if (o->mark == epoch)
			continue;
		o->mark = epoch;
		live++;
		for (int k = 0; k < 2; k++)
			if (o->ref[k])
				stack[n++] = o->ref[k];
	}
	return live;
}

static uint64_t sweep(void)
{
	uint64_t dead = 0;
	for (uint32_t at = place[0]; at; at = object(at)->next)
		if (object(at)->mark != epoch)
			dead += object(at)->size;
	return dead;
}

/* The program goes on: references move to other objects. */
static void mutate(uint32_t count)
{
	for (uint32_t i = 0; i < count; i++)
		object(place[rnd() % OBJECTS])->ref[rnd() & 1] = place[rnd() % OBJECTS];
}

int main(int argc, char **argv)
{
	int cycles = argc > 1 ? atoi(argv[1]) : 2300;
	uint32_t digest = load_classes(argc > 2 ? atoi(argv[2]) : 95);
	map_heap();
	stack = malloc(4 * OBJECTS * sizeof *stack + sizeof roots);
	allocate();
	uint64_t live = 0, dead = 0;
	for (int c = 0; c < cycles; c++) {
		live += mark();
		dead += sweep();
		mutate(200);
	}
	printf("classes %08x live %llu dead %llu kind %08x\n", digest, (unsigned long long)live, (unsigned long long)dead,
	       object(roots[7])->kind);
}
