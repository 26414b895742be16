/* Gives each new thread a color: its frames begin some whole lines lower than the last
 * thread's, so that frames of equal depth do not share cache sets.
 *
 * The color is taken from the stack by a trampoline. Setting the stack's address instead
 * would cost the thread glibc's guard page and its cache of stacks. */
#define _GNU_SOURCE
#include "parameters.h"
#include <alloca.h>
#include <dlfcn.h>
#include <pthread.h>
#include <threads.h>

typedef int (*pthread_create_fn)(pthread_t *, const pthread_attr_t *, void *(*)(void *), void *);
typedef int (*thrd_create_fn)(thrd_t *, thrd_start_t, void *);

/* The routine of a thread, on its way to the trampoline. Slots are static because the allocator may be what starts the
 * thread. */
struct start {
	atomic_int taken;
	size_t shift_bytes;
	union {
		void *(*posix)(void *);
		thrd_start_t c11;
	} routine;
	void *argument;
};

#define STARTS 256
static struct start starts[STARTS];
static atomic_uint next_start, next_color;
static struct parameters parameters;

__attribute__((constructor)) static void begin(void)
{
	begin_coloring("stacks", &parameters);
}

/* No thread loses more of its stack than this share, the trampoline's frame included. */
#define SHARE 32
#define FRAME_BYTES 128

static struct start *take_start(void)
{
	for (int tries = 0; tries < STARTS; tries++) {
		struct start *start =
			&starts[atomic_fetch_add_explicit(&next_start, 1, memory_order_relaxed) % STARTS];
		int free = 0;
		if (atomic_compare_exchange_strong(&start->taken, &free, 1))
			return start;
	}
	return NULL;
}

static size_t stack_bytes(const pthread_attr_t *attributes)
{
	size_t bytes = 0;
	if (attributes) {
		pthread_attr_getstacksize(attributes, &bytes);
	} else {
		pthread_attr_t defaults;
		if (pthread_getattr_default_np(&defaults) == 0) {
			pthread_attr_getstacksize(&defaults, &bytes);
			pthread_attr_destroy(&defaults);
		}
	}
	return bytes;
}

/* A small stack has fewer colors than the others. */
static size_t colors_that_fit(size_t stack_bytes)
{
	size_t share = stack_bytes / SHARE;
	return share < FRAME_BYTES ? 0 : (share - FRAME_BYTES) / parameters.line_bytes + 1;
}

/* The next thread's slot with its color, or NULL if it is to start as it is. The initial
 * thread has color 0, so threads begin at 1. */
static struct start *prepare(const pthread_attr_t *attributes, void *argument)
{
	if (parameters.colors < 2)
		return NULL;
	uint32_t number = atomic_fetch_add_explicit(&next_color, 1, memory_order_relaxed) + 1;
	size_t fit = colors_that_fit(stack_bytes(attributes));
	struct start *start = fit >= 2 ? take_start() : NULL;
	if (!start) {
		count(STACKS_LEFT, 1);
		return NULL;
	}
	start->shift_bytes = shift_of(&parameters, number) % (fit * parameters.line_bytes);
	start->argument = argument;
	return start;
}

static void release(struct start *start)
{
	atomic_store(&start->taken, 0);
}

/* Touched, so that the pages below are grown in order; kept from the optimiser. */
#define LOWER_STACK(bytes)                                                                     \
	do {                                                                                   \
		volatile char *pad_ = alloca((bytes) + 1);                                     \
		*pad_ = 0;                                                                     \
	} while (0)

static void *posix_trampoline(void *given)
{
	struct start *start = given;
	void *(*routine)(void *) = start->routine.posix;
	void *argument = start->argument;
	size_t shift_bytes = start->shift_bytes;
	release(start);
	LOWER_STACK(shift_bytes);
	void *result = routine(argument);
	__asm__ volatile("" ::: "memory"); /* not a tail call: the pad must stay below us */
	return result;
}

static int c11_trampoline(void *given)
{
	struct start *start = given;
	thrd_start_t routine = start->routine.c11;
	void *argument = start->argument;
	size_t shift_bytes = start->shift_bytes;
	release(start);
	LOWER_STACK(shift_bytes);
	int result = routine(argument);
	__asm__ volatile("" ::: "memory");
	return result;
}

/* Found when first needed: a program may load its thread library late. */
static void *next(const char *name, void *_Atomic *found)
{
	void *function = atomic_load_explicit(found, memory_order_acquire);
	if (!function) {
		function = dlsym(RTLD_NEXT, name);
		atomic_store_explicit(found, function, memory_order_release);
	}
	return function;
}

EXPORT int pthread_create(pthread_t *thread, const pthread_attr_t *attributes,
			  void *(*routine)(void *), void *argument)
{
	static void *_Atomic found;
	pthread_create_fn create = (pthread_create_fn)next("pthread_create", &found);
	struct start *start = prepare(attributes, argument);
	if (!start)
		return create(thread, attributes, routine, argument);
	start->routine.posix = routine;
	int error = create(thread, attributes, posix_trampoline, start);
	if (error)
		release(start);
	else
		count(STACKS_COLORED, 1);
	return error;
}

EXPORT int thrd_create(thrd_t *thread, thrd_start_t routine, void *argument)
{
	static void *_Atomic found;
	thrd_create_fn create = (thrd_create_fn)next("thrd_create", &found);
	struct start *start = prepare(NULL, argument);
	if (!start)
		return create(thread, routine, argument);
	start->routine.c11 = routine;
	int error = create(thread, c11_trampoline, start);
	if (error != thrd_success)
		release(start);
	else
		count(STACKS_COLORED, 1);
	return error;
}
