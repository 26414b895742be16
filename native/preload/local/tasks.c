/* Binds each new task of the program to the next CPU of a plan, before the task runs anything of the program's own.
 *
 * Threads pass a trampoline, and forked children a handler. A program that was started without either (posix_spawn,
 * vfork) finds that it may run where its parent may, and takes its turn before its main begins. */
#define _GNU_SOURCE
#include "../kit/kit.h"
#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <threads.h>
#include <unistd.h>

/* As crates/remedies/src/local/apply/libraries.rs names them. */
enum {
	BOUND,
	UNBOUND, /* the kernel refused */
	POOLED,  /* programs with blocks from the requested allocator */
	TURNS,   /* tasks that took their turn, the first one not counted */
	COUNTERS,
};

#define MOST_CPUS 1024
static uint16_t plan[MOST_CPUS];
static unsigned planned;

static void bind_to(unsigned cpu)
{
	cpu_set_t one;
	CPU_ZERO(&one);
	CPU_SET(cpu, &one);
	count(sched_setaffinity(0, sizeof one, &one) == 0 ? BOUND : UNBOUND, 1);
}

/* The turns of all processes go by one counter. */
static void take_turn(void)
{
	struct nearmiss_part *part = own_part();
	if (!planned || !part)
		return;
	int before = errno;
	uint64_t turn = __atomic_add_fetch(&part->counters[TURNS], 1, __ATOMIC_RELAXED);
	bind_to(plan[turn % planned]);
	errno = before;
}

/* "0,2,1,3" */
static void read_plan(const char *list)
{
	while (list && *list && planned < MOST_CPUS) {
		char *end;
		unsigned long cpu = strtoul(list, &end, 10);
		if (end == list || cpu >= CPU_SETSIZE)
			return;
		plan[planned++] = (uint16_t)cpu;
		list = *end == ',' ? end + 1 : end;
	}
}

static int runs_where_its_parent_does(void)
{
	cpu_set_t own, parents;
	return sched_getaffinity(0, sizeof own, &own) == 0 && sched_getaffinity(getppid(), sizeof parents, &parents) == 0 &&
	       CPU_EQUAL(&own, &parents);
}

/* Whether the program's malloc is that of this file, or ours before it: a program may bring its own. */
static int has_pool(const char *file)
{
	Dl_info owner;
	if (!file || !dladdr(dlsym(RTLD_DEFAULT, "malloc"), &owner) || !owner.dli_fname)
		return 0;
	return strcmp(owner.dli_fname, file) == 0 || strstr(owner.dli_fname, "/nearmiss-local-homes.so") != NULL;
}

__attribute__((constructor)) static void begin(void)
{
	const char *list = getenv("NEARMISS_LOCAL_PRELOAD");
	if (!list)
		return;
	announce(list, "tasks");
	count(POOLED, (uint64_t)has_pool(getenv("NEARMISS_LOCAL_POOL")));
	read_plan(getenv("NEARMISS_LOCAL_CPUS"));
	if (!planned)
		return;
	pthread_atfork(NULL, NULL, take_turn);
	if (runs_where_its_parent_does())
		take_turn();
}

/* The routine of a thread, on its way to the trampoline. Slots are static because the allocator may be what starts the
 * thread. */
struct start {
	atomic_int taken;
	union {
		void *(*posix)(void *);
		thrd_start_t c11;
	} routine;
	void *argument;
};

#define STARTS 256
static struct start starts[STARTS];
static atomic_uint next_start;

static struct start *take_start(void *argument)
{
	for (int tries = 0; planned && tries < STARTS; tries++) {
		struct start *start = &starts[atomic_fetch_add_explicit(&next_start, 1, memory_order_relaxed) % STARTS];
		int free = 0;
		if (atomic_compare_exchange_strong(&start->taken, &free, 1)) {
			start->argument = argument;
			return start;
		}
	}
	return NULL;
}

static void give_back(struct start *start)
{
	atomic_store_explicit(&start->taken, 0, memory_order_release);
}

static void *run_posix(void *given)
{
	struct start *start = given;
	void *(*routine)(void *) = start->routine.posix;
	void *argument = start->argument;
	give_back(start);
	take_turn();
	return routine(argument);
}

static int run_c11(void *given)
{
	struct start *start = given;
	thrd_start_t routine = start->routine.c11;
	void *argument = start->argument;
	give_back(start);
	take_turn();
	return routine(argument);
}

typedef int (*pthread_create_fn)(pthread_t *, const pthread_attr_t *, void *(*)(void *), void *);
typedef int (*thrd_create_fn)(thrd_t *, thrd_start_t, void *);

EXPORT int pthread_create(pthread_t *thread, const pthread_attr_t *attributes, void *(*routine)(void *), void *argument)
{
	static pthread_create_fn behind;
	if (!behind)
		behind = (pthread_create_fn)dlsym(RTLD_NEXT, "pthread_create");
	struct start *start = take_start(argument);
	if (!start)
		return behind(thread, attributes, routine, argument);
	start->routine.posix = routine;
	int failed = behind(thread, attributes, run_posix, start);
	if (failed)
		give_back(start);
	return failed;
}

EXPORT int thrd_create(thrd_t *thread, thrd_start_t routine, void *argument)
{
	static thrd_create_fn behind;
	if (!behind)
		behind = (thrd_create_fn)dlsym(RTLD_NEXT, "thrd_create");
	struct start *start = take_start(argument);
	if (!start)
		return behind(thread, routine, argument);
	start->routine.c11 = routine;
	int failed = behind(thread, run_c11, start);
	if (failed != thrd_success)
		give_back(start);
	return failed;
}
