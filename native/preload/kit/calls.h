/* Calls of a program or a library, named by its file and the call's address as the file was linked. */
#ifndef CALLS_H
#define CALLS_H

#include <stdint.h>

#define CALL_NAME_BYTES 128

struct call {
	char module[CALL_NAME_BYTES];
	uintptr_t address; /* as the file was linked; once it is loaded, as it was loaded */
	int loaded;
};

/* Reads `NAME+HEX`; returns what follows it, or NULL. */
const char *read_call(const char *at, struct call *call);

/* Finds the call's file among those that are loaded. */
void load_call(struct call *call);

/* Whether a return address lies behind the call. */
int returns_from(const struct call *call, const void *return_address);

#endif
