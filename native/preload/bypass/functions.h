/* The functions that a file names. */
#ifndef FUNCTIONS_H
#define FUNCTIONS_H

#include <stdint.h>

/* Calls back with each function of the file: its name, the address for which it was linked, and its bytes. By system
 * calls alone: the C library's open would be a place where a thread can be cancelled, and a copy is none. */
void each_function(const char *path, void (*visit)(void *, const char *name, uint64_t linked, uint64_t bytes), void *given);

#endif
