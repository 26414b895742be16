/* Threads as programs use them. Prints how many lines within the page a local variable of 64
 * threads uses, for pthread_create and for thrd_create. */
#define _GNU_SOURCE
#include "check.h"
#include <errno.h>
#include <execinfo.h>
#include <limits.h>
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <threads.h>

enum { MANY = 64 };

static void *address_of_local(void *argument)
{
	volatile int local = 0;
	*(uintptr_t *)argument = (uintptr_t)&local;
	CHECK((uintptr_t)__builtin_frame_address(0) % 16 == 0);
	return argument;
}

static int c11_address_of_local(void *argument)
{
	volatile int local = 0;
	*(uintptr_t *)argument = (uintptr_t)&local;
	return 17;
}

static int lines(const uintptr_t *addresses)
{
	uint64_t set = 0;
	for (int i = 0; i < MANY; i++)
		set |= 1ull << (addresses[i] >> 6 & 63);
	return __builtin_popcountll(set);
}

/* All alive at once: a stack of glibc's cache would otherwise serve them all. */
static void together(void)
{
	pthread_t threads[MANY];
	thrd_t others[MANY];
	uintptr_t addresses[MANY];
	for (int i = 0; i < MANY; i++)
		CHECK(pthread_create(&threads[i], NULL, address_of_local, &addresses[i]) == 0);
	for (int i = 0; i < MANY; i++) {
		void *result;
		CHECK(pthread_join(threads[i], &result) == 0 && result == &addresses[i]);
	}
	int posix = lines(addresses);
	for (int i = 0; i < MANY; i++)
		CHECK(thrd_create(&others[i], c11_address_of_local, &addresses[i]) == thrd_success);
	for (int i = 0; i < MANY; i++) {
		int result;
		CHECK(thrd_join(others[i], &result) == thrd_success && result == 17);
	}
	printf("lines %d %d\n", posix, lines(addresses));
}

static volatile int cleaned;
static void clean(void *argument)
{
	(void)argument;
	cleaned++;
}

static void *leave_by_exit(void *argument)
{
	pthread_cleanup_push(clean, NULL);
	pthread_exit(argument);
	pthread_cleanup_pop(0);
}

static void *wait_for_cancel(void *argument)
{
	pthread_cleanup_push(clean, NULL);
	for (;;)
		pause();
	pthread_cleanup_pop(0);
	return argument;
}

/* Both unwind the stack through any starter of the thread. */
static void unwinding(void)
{
	pthread_t thread;
	void *result;
	CHECK(pthread_create(&thread, NULL, leave_by_exit, (void *)&cleaned) == 0);
	CHECK(pthread_join(thread, &result) == 0 && result == &cleaned);
	CHECK(pthread_create(&thread, NULL, wait_for_cancel, NULL) == 0);
	CHECK(pthread_cancel(thread) == 0);
	CHECK(pthread_join(thread, &result) == 0 && result == PTHREAD_CANCELED);
	CHECK(cleaned == 2);
}

static void *backtrace_ends(void *argument)
{
	void *frames[32];
	CHECK(backtrace(frames, 32) >= 2 && backtrace(frames, 32) < 16);
	return argument;
}

static void *overflow(void *argument)
{
	volatile char page[4096];
	page[0] = 1;
	return page[0] ? overflow((void *)((uintptr_t)argument + page[0])) : (void *)page;
}

/* The guard page below the stack is still there. */
static void guarded(void)
{
	pid_t child = fork();
	if (child == 0) {
		struct rlimit none = { 0, 0 };
		setrlimit(RLIMIT_CORE, &none);
		pthread_t thread;
		CHECK(pthread_create(&thread, NULL, overflow, NULL) == 0);
		pthread_join(thread, NULL);
		_exit(0);
	}
	int status;
	CHECK(waitpid(child, &status, 0) == child);
	CHECK(WIFSIGNALED(status) && WTERMSIG(status) == SIGSEGV);
}

static void *uses_most_of_its_stack(void *argument)
{
	size_t bytes = *(size_t *)argument;
	volatile char *all = __builtin_alloca(bytes);
	for (size_t i = 0; i < bytes; i += 512)
		all[i] = 1;
	return argument;
}

/* A small stack keeps what it can hold. */
static void small_stacks(void)
{
	pthread_attr_t attributes;
	pthread_attr_init(&attributes);
	CHECK(pthread_attr_setstacksize(&attributes, PTHREAD_STACK_MIN) == 0);
	for (int i = 0; i < 2 * MANY; i++) {
		size_t bytes = PTHREAD_STACK_MIN / 2;
		pthread_t thread;
		CHECK(pthread_create(&thread, &attributes, uses_most_of_its_stack, &bytes) == 0);
		pthread_join(thread, NULL);
	}
	CHECK(pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED) == 0);
	pthread_t thread;
	uintptr_t address;
	CHECK(pthread_create(&thread, &attributes, address_of_local, &address) == 0);
	pthread_attr_destroy(&attributes);
}

static void errors(void)
{
	pthread_attr_t attributes;
	pthread_attr_init(&attributes);
	pthread_attr_setstacksize(&attributes, (size_t)1 << 46);
	for (int i = 0; i < 1000; i++) {
		pthread_t thread;
		CHECK(pthread_create(&thread, &attributes, address_of_local, NULL) == EAGAIN);
	}
	pthread_attr_destroy(&attributes);
}

int main(void)
{
	together();
	unwinding();
	guarded();
	small_stacks();
	errors();
	pthread_t thread;
	CHECK(pthread_create(&thread, NULL, backtrace_ends, NULL) == 0);
	pthread_join(thread, NULL);
	return 0;
}
