/* Memory as a program allocates it: blocks of malloc and of its relatives, and mappings without a file. A library that
 * includes these functions gets each allocation of a size and more, and hands on what the allocator behind it returned. */
#ifndef ALLOCATIONS_H
#define ALLOCATIONS_H

#include <stddef.h>
#include <stdint.h>

/* Least bytes of an allocation that is passed on; SIZE_MAX, none, until the library sets it. */
extern size_t allocations_from __attribute__((visibility("hidden")));

/* The library's own: an allocation by the call that `caller` is the return address of. */
__attribute__((visibility("hidden"), cold)) void allocated(void *memory, size_t bytes, const void *caller);

#endif
