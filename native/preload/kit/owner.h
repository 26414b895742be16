/* Whether what the process calls malloc ends in this library. */
#ifndef OWNER_H
#define OWNER_H

#include <stdatomic.h>

/* Set by the library's malloc when it is reached. */
extern atomic_int malloc_reached;

/* `own_name`: another exported name of the library's malloc. Every call of malloc must still note that it was reached. */
int process_malloc_is_ours(const char *own_name);

#endif
