/* The run queue of Linux 2.4: task structures at the bottom of aligned pieces of memory, in
 * one list under one spin lock. Each visit reads the 32 bytes at offset 0x20-0x3F, as
 * schedule() does, and then goes on to the next task. Prints the time a visit takes.
 *
 * Standard tasks begin where their pieces do and so share a few cache sets; colored ones (--colors, or NEARMISS_COLOR's
 * value) do not. */
#define _GNU_SOURCE
#include "nearmiss-color.h"
#include <errno.h>
#include <inttypes.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>

#define LINE_BYTES 64
#define MOST_THREADS 1024

struct task {
	char before[0x20];
	struct task *next; /* 0x20 */
	uint64_t counter;  /* 0x28 */
	uint64_t nice;     /* 0x30 */
	uint64_t mm;       /* 0x38 */
};
_Static_assert(offsetof(struct task, next) == 0x20 && sizeof(struct task) == 0x40,
	       "the 32 bytes lie where the paper found them");

struct queue {
	_Alignas(128) atomic_int lock;
	_Alignas(128) struct task *first;
	uint64_t expected; /* what a whole walk adds up to */
};

static struct queue queue;

struct walker {
	pthread_t thread;
	uint64_t walks;
	int right;
};

static void lock(void)
{
	for (unsigned spins = 0;; spins++) {
		if (!atomic_load_explicit(&queue.lock, memory_order_relaxed) &&
		    !atomic_exchange_explicit(&queue.lock, 1, memory_order_acquire))
			return;
		/* The holder may be waiting for this very CPU. */
		if (spins % 1024 == 1023)
			sched_yield();
#if defined(__x86_64__)
		__builtin_ia32_pause();
#endif
	}
}

static void unlock(void)
{
	atomic_store_explicit(&queue.lock, 0, memory_order_release);
}

static __attribute__((noinline)) uint64_t walk(const struct task *task)
{
	uint64_t goodness = 0;
	for (; task; task = task->next)
		goodness += task->counter + task->nice + task->mm;
	return goodness;
}

static void *schedule(void *argument)
{
	struct walker *walker = argument;
	walker->right = 1;
	for (uint64_t i = 0; i < walker->walks; i++) {
		lock();
		uint64_t goodness = walk(queue.first);
		unlock();
		walker->right &= goodness == queue.expected;
	}
	return NULL;
}

/* Links the tasks in an order without stride, so that no prefetcher predicts the next. */
static void enqueue_all(char *memory, uint64_t objects, const struct nearmiss_coloring *coloring)
{
	uint64_t state = 0x9e3779b97f4a7c15ull;
	uint32_t *order = malloc(objects * sizeof *order);
	if (!order) {
		fprintf(stderr, "aligned-tasks: no memory for the order of %" PRIu64 " objects\n", objects);
		exit(1);
	}
	for (uint32_t i = 0; i < objects; i++)
		order[i] = i;
	for (uint64_t i = objects - 1; i > 0; i--) {
		state = state * 6364136223846793005ull + 1442695040888963407ull;
		uint64_t other = (state >> 33) % (i + 1);
		uint32_t kept = order[i];
		order[i] = order[other];
		order[other] = kept;
	}
	for (uint64_t i = 0; i < objects; i++) {
		struct task *task = nearmiss_color(coloring, memory + order[i] * coloring->piece);
		task->counter = i;
		task->nice = 20;
		task->mm = i % 7;
		task->next = queue.first;
		queue.first = task;
		queue.expected += task->counter + task->nice + task->mm;
	}
	free(order);
}

static uint64_t now_ns(void)
{
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

static void usage(FILE *out)
{
	fputs("usage: aligned-tasks [--objects N] [--align BYTES] [--colors N] [--threads N] [--visits N] [--huge]\n"
	      "  --objects  tasks in the run queue (1024)\n"
	      "  --align    bytes of a task's piece and its alignment, a power of two (8192)\n"
	      "  --colors   a power of two; 1 is the standard kernel (NEARMISS_COLOR, else 1)\n"
	      "  --threads  CPUs that schedule (1)\n"
	      "  --visits   tasks visited by all threads together (20000000)\n"
	      "  --huge     let the kernel back the pieces with huge pages\n",
	      out);
}

static uint64_t number(const char *name, const char *text, uint64_t least, uint64_t most)
{
	char *end = NULL;
	errno = 0;
	unsigned long long n = text ? strtoull(text, &end, 10) : 0;
	if (!text || errno || *end || end == text || *text == '-' || n < least || n > most) {
		fprintf(stderr, "aligned-tasks: %s %s: give a number from %" PRIu64 " to %" PRIu64 "\n", name,
			text ? text : "(nothing)", least, most);
		exit(2);
	}
	return n;
}

int main(int argc, char **argv)
{
	uint64_t objects = 1024, align = 8192, threads = 1, visits = 20000000, huge = 0;
	uint64_t colors = nearmiss_colors_asked();
	for (int i = 1; i < argc; i++) {
		const char *name = argv[i];
		if (!strcmp(name, "--huge")) {
			huge = 1;
			continue;
		}
		if (!strcmp(name, "--help")) {
			usage(stdout);
			return 0;
		}
		const char *value = argv[++i < argc ? i : argc];
		if (!strcmp(name, "--objects"))
			objects = number(name, value, 1, 1 << 24);
		else if (!strcmp(name, "--align"))
			align = number(name, value, 128, 1 << 24);
		else if (!strcmp(name, "--colors"))
			colors = number(name, value, 1, 1024);
		else if (!strcmp(name, "--threads"))
			threads = number(name, value, 1, MOST_THREADS);
		else if (!strcmp(name, "--visits"))
			visits = number(name, value, 1, UINT64_C(1) << 50);
		else {
			usage(stderr);
			return 2;
		}
	}
	struct nearmiss_coloring coloring = nearmiss_coloring_make(align, LINE_BYTES, colors);
	if (!nearmiss_is_power_of_two(align) || objects > ((uint64_t)1 << 40) / align ||
	    (colors > 1 && !coloring.mask)) {
		fprintf(stderr,
			"aligned-tasks: --align %" PRIu64 " --colors %" PRIu64
			": both must be powers of two, and the colors take at most half the piece\n",
			align, colors);
		return 2;
	}

	char *memory = mmap(NULL, (objects + 1) * align, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (memory == MAP_FAILED) {
		fprintf(stderr, "aligned-tasks: no memory for %" PRIu64 " objects of %" PRIu64 " bytes\n", objects, align);
		return 1;
	}
	memory = nearmiss_color_piece(&coloring, memory + align - 1);
	/* Small pages lie anywhere in memory, as the kernel's own allocator leaves them. */
	madvise(memory, objects * align, huge ? MADV_HUGEPAGE : MADV_NOHUGEPAGE);
	enqueue_all(memory, objects, &coloring);

	static struct walker walkers[MOST_THREADS];
	uint64_t walks = (visits + objects - 1) / objects;
	uint64_t start = now_ns();
	for (uint64_t i = 0; i < threads; i++) {
		walkers[i].walks = walks / threads + (i < walks % threads);
		if (pthread_create(&walkers[i].thread, NULL, schedule, &walkers[i])) {
			fprintf(stderr, "aligned-tasks: cannot start thread %" PRIu64 "\n", i);
			return 1;
		}
	}
	int right = 1;
	for (uint64_t i = 0; i < threads; i++) {
		pthread_join(walkers[i].thread, NULL);
		right &= walkers[i].right;
	}
	double ns_per_visit = (double)(now_ns() - start) / (double)(walks * objects);

	printf("objects %" PRIu64 " align %" PRIu64 " colors %" PRIu64 " threads %" PRIu64 " visits %" PRIu64 "\n",
	       objects, align, colors, threads, walks * objects);
	printf("ns_per_visit %.3f\n", ns_per_visit);
	if (!right) {
		fprintf(stderr, "aligned-tasks: a walk did not see every task\n");
		return 1;
	}
	return 0;
}
