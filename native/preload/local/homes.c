/* Gives memory its node where the program allocates it: blocks of a page and more, and mappings. The memory is what the
 * allocator behind us, or the kernel, returns; only its policy is set, and nothing has to be remembered. */
#define _GNU_SOURCE
#include "../kit/allocations.h"
#include "../kit/behind.h"
#include "../kit/kit.h"
#include "rules.h"
#include <stdlib.h>

#define LEAST_BYTES 4096

/* As crates/remedies/src/local/apply/libraries.rs names them. */
enum {
	HOMED,
	HOMED_BYTES,
	REFUSED,
	COUNTERS,
};

void count_home(size_t bytes, int failed)
{
	count(failed ? REFUSED : HOMED, 1);
	if (!failed)
		count(HOMED_BYTES, bytes);
}

__attribute__((constructor)) static void begin(void)
{
	need_behind();
	const char *list = getenv("NEARMISS_LOCAL_PRELOAD");
	if (!list)
		return;
	announce(list, "homes");
	if (read_rules(getenv("NEARMISS_LOCAL_HOMES"), parameter(list, "nodes", 16)))
		allocations_from = LEAST_BYTES;
}

void allocated(void *memory, size_t bytes, const void *caller)
{
	give_homes(memory, bytes, caller);
}
