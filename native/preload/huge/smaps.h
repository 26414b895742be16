/* The kernel's figures of this process's memory. */
#ifndef SMAPS_H
#define SMAPS_H

#include <stddef.h>
#include <stdint.h>

/* Bytes of this process that lie in large pages; 0 if the kernel has no such figure. */
uint64_t large_bytes(void);

/* Calls `each` for every private mapping without a file that may be written, but for stacks. */
void each_anonymous(void (*each)(uintptr_t start, size_t bytes));

#endif
