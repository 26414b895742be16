/* SPDX-License-Identifier: MIT OR Apache-2.0
 *
 * A second opinion on groupings of tasks: two cores of two hardware threads, each core with 8 KiB of first level (4-way)
 * and 512 KiB of second level (8-way), one bus. It knows nothing of nearmiss's model. The hardware thread with the clock
 * that is behind executes its next reference; caches are searched from the most recently used line on; a core's tasks take turns
 * on its two hardware threads, by slices. Each task executes as many instructions as the others.
 *
 * interleaver SEED PLACEMENTS SLICE INSTRUCTIONS FROM GROUPS STREAM...
 *
 * GROUPS has a letter a stream: a for the first core, b for the second. FROM is the part of a task, in eighths, that lies
 * behind it when it begins, of what it has beyond INSTRUCTIONS; there it begins anew when its stream is over, so that it
 * may execute more than was recorded. A slice has half to one and a half of SLICE, in cycles, by chance, as else the same
 * tasks would coincide again and again. Output: cycles of all tasks together, a line a placement of pages. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_TASKS = 64, CORES = 2, THREADS = 2, LINE = 64, PAGE = 4096, BUS = 42, SECOND = 7, MEMORY = 400 };
/* The part of a wait that a core does not hide, in tenths. */
enum { SEEN = 6 };

struct reference {
    uint64_t address;
    uint32_t instructions, stores;
};

struct task {
    struct reference *references;
    size_t count, begin, at;
    uint64_t left;
    int core;
};

/* Sets of lines, the most recently used first. */
struct cache {
    uint64_t ways, sets;
    uint64_t lines[1024][8];
};

static struct task tasks[MOST_TASKS];
static int task_count;
static struct cache first[CORES], second[CORES];
static uint64_t placement;

static void fail(const char *what)
{
    fprintf(stderr, "interleaver: %s\n", what);
    exit(2);
}

static uint64_t mixed(uint64_t a)
{
    a += 0x9e3779b97f4a7c15ULL;
    a = (a ^ a >> 30) * 0xbf58476d1ce4e5b9ULL;
    a = (a ^ a >> 27) * 0x94d049bb133111ebULL;
    return a ^ a >> 31;
}

/* The place of a page: anywhere, alike for all groupings. */
static uint64_t placed(uint64_t address)
{
    return (mixed(address / PAGE ^ placement << 40) >> 24) * PAGE + address % PAGE;
}

static int holds(struct cache *cache, uint64_t line)
{
    uint64_t *set = cache->lines[line % cache->sets], way = 0;
    while (way < cache->ways - 1 && set[way] != line)
        way++;
    int found = set[way] == line;
    memmove(set + 1, set, way * sizeof *set);
    set[0] = line;
    return found;
}

static void empty(struct cache *cache, uint64_t bytes, uint64_t ways)
{
    memset(cache, 0xff, sizeof *cache);
    cache->ways = ways;
    cache->sets = bytes / LINE / ways;
}

static void load(const char *name, struct task *task)
{
    FILE *file = fopen(name, "rb");
    if (!file || fseek(file, 0, SEEK_END))
        fail(name);
    task->count = (size_t)ftell(file) / sizeof *task->references;
    task->references = malloc(task->count * sizeof *task->references + 1);
    rewind(file);
    if (!task->references || fread(task->references, sizeof *task->references, task->count, file) != task->count)
        fail(name);
    fclose(file);
}

static void skip(struct task *task, uint64_t instructions, uint64_t eighths)
{
    uint64_t all = 0, before = 0;
    for (size_t n = 0; n < task->count; n++)
        all += task->references[n].instructions;
    uint64_t behind = all > instructions ? (all - instructions) / 8 * eighths : 0;
    for (task->begin = 0; task->begin < task->count && before < behind; task->begin++)
        before += task->references[task->begin].instructions;
}

/* One reference of a task at a time; what it takes. */
static uint64_t step(struct task *task, uint64_t now, uint64_t *bus_free)
{
    struct reference *next = &task->references[task->at++];
    uint64_t line = placed(next->address) / LINE, cycles = next->instructions;
    if (task->at == task->count)
        task->at = task->begin;
    task->left -= task->left < next->instructions ? task->left : next->instructions;
    if (holds(&first[task->core], line))
        return cycles;
    if (holds(&second[task->core], line))
        return cycles + SECOND * SEEN / 10;
    uint64_t begins = now + cycles > *bus_free ? now + cycles : *bus_free;
    *bus_free = begins + BUS;
    return cycles + (begins - now - cycles + MEMORY) * SEEN / 10;
}

/* The next of a core's tasks behind the one that ran, neither over nor on the other hardware thread. */
static int next_task(int core, int behind, int beside)
{
    for (int n = 1; n <= task_count; n++) {
        int task = (behind + n) % task_count;
        if (tasks[task].core == core && task != beside && tasks[task].left)
            return task;
    }
    return -1;
}

static uint64_t run(uint64_t slice)
{
    uint64_t clock[CORES * THREADS] = {0}, until[CORES * THREADS] = {0}, cycles = 0, bus_free = 0, drawn = 0;
    int running[CORES * THREADS] = {-1, -1, -1, -1}, latest[CORES * THREADS] = {0};
    for (int core = 0; core < CORES; core++) {
        empty(&first[core], 8 << 10, 4);
        empty(&second[core], 512 << 10, 8);
    }
    for (;;) {
        int cpu = -1;
        for (int n = 0; n < CORES * THREADS; n++) {
            int beside = running[n ^ 1];
            if (running[n] < 0 || !tasks[running[n]].left || clock[n] >= until[n]) {
                running[n] = next_task(n / THREADS, latest[n], beside);
                until[n] = clock[n] + slice / 2 + slice * (mixed(placement << 32 ^ ++drawn) % 1024) / 1024;
                if (running[n] >= 0)
                    latest[n] = running[n];
            }
            if (running[n] >= 0 && (cpu < 0 || clock[n] < clock[cpu]))
                cpu = n;
        }
        if (cpu < 0)
            return cycles;
        uint64_t took = step(&tasks[running[cpu]], clock[cpu], &bus_free);
        clock[cpu] += took;
        cycles += took;
        /* An idle hardware thread waits with the others. */
        for (int n = 0; n < CORES * THREADS; n++)
            if (running[n] < 0 && clock[n] < clock[cpu])
                clock[n] = clock[cpu];
    }
}

int main(int argc, char **argv)
{
    if (argc < 8)
        fail("SEED PLACEMENTS SLICE INSTRUCTIONS FROM GROUPS STREAM...");
    uint64_t seed = strtoull(argv[1], NULL, 10), placements = strtoull(argv[2], NULL, 10);
    uint64_t slice = strtoull(argv[3], NULL, 10), instructions = strtoull(argv[4], NULL, 10);
    uint64_t from = strtoull(argv[5], NULL, 10);
    task_count = argc - 7;
    if (task_count > MOST_TASKS || (size_t)task_count != strlen(argv[6]))
        fail("a letter of GROUPS for each stream");
    for (int n = 0; n < task_count; n++) {
        load(argv[7 + n], &tasks[n]);
        skip(&tasks[n], instructions, from);
        tasks[n].core = argv[6][n] != 'a';
    }
    for (placement = seed; placement < seed + placements; placement++) {
        for (int n = 0; n < task_count; n++) {
            tasks[n].at = tasks[n].begin;
            tasks[n].left = instructions;
        }
        printf("%llu\n", (unsigned long long)run(slice));
    }
    return 0;
}
