/* Ways to use memory, by name: `shapes NAME [MEGABYTES [VISITS]]`. The first six wait for translation or for page faults
 * of 4 KiB, the others do not, or not enough. Each prints a digest of what it read. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#define LINE 64
#define PAGE 4096ul
#define LARGE_PAGE (2ul << 20)

static uint64_t state = 1;

static uint64_t next(void)
{
	state = state * 6364136223846793005u + 1442695040888963407u;
	return state >> 20;
}

static void *memory(size_t bytes)
{
	void *block = malloc(bytes);
	if (!block)
		exit(2);
	return block;
}

static uint64_t *filled(size_t words)
{
	uint64_t *array = memory(words * 8);
	for (size_t i = 0; i < words; i++)
		array[i] = i * 3;
	return array;
}

/* Sums words at random places: the loads wait together. */
static uint64_t gather(size_t bytes, size_t visits)
{
	size_t words = bytes / 8;
	uint64_t *array = filled(words), sum = 0;
	for (size_t i = 0; i < visits; i++)
		sum += array[next() % words];
	return sum;
}

/* Follows a ring of nodes in random order: each load waits for the one before. */
static uint64_t chain(size_t bytes, size_t visits)
{
	size_t nodes = bytes / LINE;
	struct node { struct node *next; char rest[LINE - 8]; } *all = memory(nodes * LINE), *at = all;
	uint32_t *order = memory(nodes * 4);
	for (size_t i = 0; i < nodes; i++)
		order[i] = (uint32_t)i;
	for (size_t i = nodes - 1; i > 0; i--) {
		size_t other = next() % i;
		uint32_t kept = order[i];
		order[i] = order[other];
		order[other] = kept;
	}
	for (size_t i = 0; i < nodes; i++)
		all[order[i]].next = &all[order[(i + 1) % nodes]];
	for (size_t i = 0; i < visits; i++)
		at = at->next;
	return (uint64_t)(at - all);
}

/* Looks keys up in a hash table with open addressing, half of them in vain. */
static uint64_t probes(size_t bytes, size_t visits)
{
	size_t slots = bytes / 16, mask = slots - 1, found = 0;
	struct { uint64_t key, value; } *table = calloc(slots, 16);
	if (!table || slots & mask)
		exit(2);
	for (size_t i = 1; i < slots / 2; i++) {
		size_t at = i * 0x9e3779b97f4a7c15u >> 20 & mask;
		while (table[at].key)
			at = (at + 1) & mask;
		table[at].key = i;
	}
	for (size_t i = 0; i < visits; i++) {
		uint64_t key = next() % slots + 1;
		size_t at = key * 0x9e3779b97f4a7c15u >> 20 & mask;
		while (table[at].key && table[at].key != key)
			at = (at + 1) & mask;
		found += table[at].key == key;
	}
	return found;
}

/* Reads a matrix of 4 KiB and a line a row by columns: another page at each step. */
static uint64_t columns(size_t bytes, size_t visits)
{
	size_t row = (PAGE + LINE) / 8, rows = bytes / 8 / row, sum = 0;
	uint64_t *matrix = filled(rows * row);
	for (size_t i = 0, column = 0; i < visits; column = (column + 1) % row)
		for (size_t r = 0; r < rows && i < visits; r++, i++)
			sum += matrix[r * row + column];
	return sum;
}

/* Small blocks of the heap, used in random order. */
static uint64_t blocks(size_t bytes, size_t visits)
{
	size_t count = bytes / LINE;
	uint64_t **all = memory(count * 8), sum = 0;
	for (size_t i = 0; i < count; i++) {
		all[i] = memory(LINE - 16);
		*all[i] = i;
	}
	for (size_t i = 0; i < visits; i++)
		sum += *all[next() % count];
	return sum;
}

/* Fresh memory, written once. */
static uint64_t fresh(size_t bytes, size_t visits)
{
	uint64_t sum = 0;
	for (size_t i = 0; i < visits; i++) {
		char *block = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
		if (block == MAP_FAILED)
			exit(2);
		memset(block, (int)i + 1, bytes);
		sum += (uint64_t)block[i % bytes];
		munmap(block, bytes);
	}
	return sum;
}

/* As `gather`, over memory that translation reaches. */
static uint64_t small(size_t bytes, size_t visits)
{
	return gather(bytes, visits);
}

/* From the begin to the end, again and again. */
static uint64_t scan(size_t bytes, size_t visits)
{
	size_t words = bytes / 8;
	uint64_t *array = filled(words), sum = 0;
	for (size_t i = 0; i < visits; i++)
		sum += array[i % words];
	return sum;
}

/* One page of each 2 MiB, once and again. */
static uint64_t sparse(size_t bytes, size_t visits)
{
	size_t places = bytes / LARGE_PAGE;
	char *block = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	uint64_t sum = 0;
	if (block == MAP_FAILED)
		exit(2);
	for (size_t i = 0; i < visits; i++)
		sum += (uint64_t)++block[i % places * LARGE_PAGE];
	return sum;
}

/* Children that touch a part of their parent's memory. */
static uint64_t forks(size_t bytes, size_t visits)
{
	size_t words = bytes / 8;
	uint64_t *array = filled(words);
	for (size_t i = 0; i < visits; i++) {
		pid_t child = fork();
		if (child == 0) {
			for (size_t page = i; page < words / 512; page += 64)
				array[page * 512]++;
			_exit(0);
		}
		if (child < 0 || waitpid(child, NULL, 0) < 0)
			exit(2);
	}
	return array[words - 1];
}

static const struct {
	const char *name;
	uint64_t (*work)(size_t bytes, size_t visits);
	size_t megabytes, visits;
} shapes[] = {
	{ "gather", gather, 64, 2000000 },   { "chain", chain, 32, 400000 },    { "probes", probes, 64, 1000000 },
	{ "columns", columns, 32, 1000000 }, { "blocks", blocks, 32, 1000000 }, { "fresh", fresh, 16, 4 },
	{ "small", small, 1, 2000000 },      { "scan", scan, 4, 20000000 },     { "sparse", sparse, 512, 1000000 },
	{ "forks", forks, 8, 40 },
};

int main(int argc, char **argv)
{
	for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++) {
		if (argc < 2 || strcmp(argv[1], shapes[i].name) != 0)
			continue;
		size_t megabytes = argc > 2 ? strtoul(argv[2], NULL, 10) : shapes[i].megabytes;
		size_t visits = argc > 3 ? strtoul(argv[3], NULL, 10) : shapes[i].visits;
		printf("%lu\n", (unsigned long)shapes[i].work(megabytes << 20, visits));
		return 0;
	}
	return fprintf(stderr, "usage: shapes NAME [MEGABYTES [VISITS]]\n"), 2;
}
