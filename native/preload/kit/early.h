/* Memory for the few allocations that come while the real allocator is being looked up. */
#ifndef EARLY_H
#define EARLY_H

#include <stddef.h>

void *early_allocate(size_t bytes);
/* Whether any was handed out. */
int early_used(void);
/* Whether a block is of this memory; it is never given back. */
int early_owns(const void *block);
size_t early_size(const void *block);

#endif
