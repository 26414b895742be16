/* Makes glibc's malloc keep what the program frees: no block is a mapping of its own, and the top of the heap is not
 * given back, or only above a limit. The program's own mallopt comes later and stands. As the program ends, its page
 * faults are counted. */
#define _GNU_SOURCE
#include "../kit/kit.h"
#include <limits.h>
#include <malloc.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

/* As crates/remedies/src/keep/apply/libraries.rs names them. */
enum {
	KEEPS,
	MALLOC_ELSEWHERE, /* programs with a malloc of their own */
	PAGE_FAULTS,
	COUNTERS,
};

/* Larger than blocks of a thread's own cache, which change no count. */
enum { TRIED_BYTES = 4096 };

/* Addresses do not show it: an executable at a fixed address may have an entry of its own that leads to glibc's. */
static int malloc_is_of_glibc(void)
{
	size_t before = mallinfo2().uordblks;
	void *volatile block = malloc(TRIED_BYTES);
	size_t with = mallinfo2().uordblks;

	free(block);
	return block && with >= before + TRIED_BYTES;
}

__attribute__((constructor)) static void begin(void)
{
	const char *list = getenv("NEARMISS_KEEP_PRELOAD");
	if (!list)
		return;
	announce(list, "keep");
	if (!malloc_is_of_glibc()) {
		count(MALLOC_ELSEWHERE, 1);
		return;
	}
	uint64_t most = parameter(list, "most", 10);
	int top = most && most <= INT_MAX ? (int)most : -1;
	count(KEEPS, mallopt(M_MMAP_MAX, 0) && mallopt(M_TRIM_THRESHOLD, top));
}

__attribute__((destructor)) static void end(void)
{
	struct rusage usage;

	if (own_part() && getrusage(RUSAGE_SELF, &usage) == 0)
		count(PAGE_FAULTS, (uint64_t)usage.ru_minflt);
}

/* Ends without the destructors of libraries. */
EXPORT void _exit(int status)
{
	end();
	for (;;)
		syscall(SYS_exit_group, status);
}

EXPORT void _Exit(int status)
{
	_exit(status);
}
