/* The allocator behind a preloaded malloc: the program's own if it brings one, else the C library's. */
#ifndef BEHIND_H
#define BEHIND_H

#include <stdatomic.h>
#include <stddef.h>

/* The C library's until it was looked for: the search itself may allocate. */
struct behind {
	atomic_int found;
	void *(*_Atomic malloc)(size_t);
	void *(*_Atomic calloc)(size_t, size_t);
	void *(*_Atomic realloc)(void *, size_t);
	/* NULL until found, and where the allocator has none. */
	void *(*_Atomic aligned)(size_t, size_t);
	size_t (*_Atomic usable)(void *);
};

extern struct behind behind __attribute__((visibility("hidden")));

void find_behind(void);

static inline void need_behind(void)
{
	if (__builtin_expect(!atomic_load_explicit(&behind.found, memory_order_acquire), 0))
		find_behind();
}

/* Whether the C library's own allocator is behind us. */
int behind_is_libc(void);

#endif
