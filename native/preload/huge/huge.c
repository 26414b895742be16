/* Requests large pages for memory where the program allocates it: mappings and blocks of 2 MiB and more, of all calls
 * or of chosen ones, and the zeroed variables of the program. The memory is what the allocator behind us, or the kernel,
 * returns; only its advice is set, and nothing has to be remembered. As the program ends, it counts how much of its
 * memory lies in large pages. */
#define _GNU_SOURCE
#include "../kit/allocations.h"
#include "../kit/behind.h"
#include "../kit/calls.h"
#include "../kit/kit.h"
#include "smaps.h"
#include <errno.h>
#include <gnu/libc-version.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#define LARGE_PAGE (2ul << 20)
#define PAGE_BYTES 4096ul
#define MOST_SITES 64

/* As crates/remedies/src/huge/apply/libraries.rs names them. */
enum {
	REQUESTED,
	REQUESTED_BYTES,
	REFUSED,
	LARGE_BYTES,
	OLD_LIBC,
	COUNTERS,
};

static struct call sites[MOST_SITES];
static unsigned count_of_sites;

/* For the whole blocks of 2 MiB in it. The first page of a block of malloc is its own but for a header. */
static void request(uintptr_t start, size_t bytes)
{
	uintptr_t from = (start & ~(PAGE_BYTES - 1)) + LARGE_PAGE - 1;
	from &= ~(LARGE_PAGE - 1);
	uintptr_t to = (start + bytes + PAGE_BYTES - 1) & ~(LARGE_PAGE - 1);
	int before = errno;

	if (from >= to)
		return;
	int failed = madvise((void *)from, to - from, MADV_HUGEPAGE);
	count(failed ? REFUSED : REQUESTED, 1);
	if (!failed)
		count(REQUESTED_BYTES, to - from);
	errno = before;
}

void allocated(void *memory, size_t bytes, const void *caller)
{
	int chosen = !count_of_sites;
	for (unsigned i = 0; i < count_of_sites && !chosen; i++)
		chosen = returns_from(&sites[i], caller);
	if (chosen)
		request((uintptr_t)memory, bytes);
}

/* The most at once of this program; a forked child has its parent's memory, which is counted already. */
static void count_large(void)
{
	static atomic_ulong most;
	unsigned long now = large_bytes(), before = atomic_load(&most);
	while (now > before)
		if (atomic_compare_exchange_weak(&most, &before, now))
			count(LARGE_BYTES, now - before), before = now;
}

static void read_sites(const char *list)
{
	while (list && *list && count_of_sites < MOST_SITES) {
		list = read_call(list, &sites[count_of_sites]);
		if (list)
			load_call(&sites[count_of_sites++]);
		if (list && *list == ';')
			list++;
	}
}

/* glibc takes the tunable of its heap from 2.35 on. */
static int is_old(const char *version)
{
	char *dot;
	unsigned long major = strtoul(version, &dot, 10);
	return major < 2 || (major == 2 && *dot == '.' && strtoul(dot + 1, NULL, 10) < 35);
}

__attribute__((constructor)) static void begin(void)
{
	need_behind();
	const char *list = getenv("NEARMISS_HUGE_PRELOAD");
	if (!list)
		return;
	announce(list, "huge");
	if (parameter(list, "sites", 10))
		read_sites(getenv("NEARMISS_HUGE_SITES"));
	else
		each_anonymous(request);
	if (!count_of_sites)
		count(OLD_LIBC, is_old(gnu_get_libc_version()));
	allocations_from = LARGE_PAGE;
}

__attribute__((destructor)) static void end(void)
{
	if (own_part())
		count_large();
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
