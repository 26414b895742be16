/* Which blocks were handed out shifted, and by how much: a table beside the memory, since a
 * mark inside it could be met by chance, and reading before a block could fault. */
#ifndef SHIFTED_H
#define SHIFTED_H

#include <stddef.h>

/* No smaller block may be entered: at most one block then begins in any page of 4 KB. */
#define SHIFTED_LEAST_BYTES 4096
#define SHIFTED_LARGEST_SHIFT ((1u << 20) - 1)

/* Enters a block by the address its user has. Returns 0 when memory for the table lacks. */
int shifted_put(void *user, size_t shift_bytes);
/* By how much a block was shifted; 0 if it was not. */
size_t shifted_get(const void *user);
/* The same, and takes it out. */
size_t shifted_take(void *user);

#endif
