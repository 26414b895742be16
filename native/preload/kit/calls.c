#define _GNU_SOURCE
#include "calls.h"
#include <limits.h>
#include <link.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* A call is two to seven bytes long, and returns behind itself. */
#define LONGEST_CALL 8

const char *read_call(const char *at, struct call *call)
{
	const char *plus = strchr(at, '+');
	char *end;
	if (!plus || (size_t)(plus - at) >= CALL_NAME_BYTES)
		return NULL;
	memcpy(call->module, at, (size_t)(plus - at));
	call->module[plus - at] = 0;
	call->address = strtoull(plus + 1, &end, 16);
	call->loaded = 0;
	return end > plus + 1 ? end : NULL;
}

static const char *base_name(const char *path)
{
	const char *slash = strrchr(path, '/');
	return slash ? slash + 1 : path;
}

static int find_module(struct dl_phdr_info *object, size_t size, void *given)
{
	struct call *call = given;
	char own[PATH_MAX];
	const char *name = object->dlpi_name;
	(void)size;
	if (!name || !*name) {
		ssize_t length = readlink("/proc/self/exe", own, sizeof own - 1);
		own[length < 0 ? 0 : length] = 0;
		name = own;
	}
	if (strcmp(base_name(name), call->module) != 0)
		return 0;
	call->address += object->dlpi_addr;
	call->loaded = 1;
	return 1;
}

void load_call(struct call *call)
{
	dl_iterate_phdr(find_module, call);
}

int returns_from(const struct call *call, const void *return_address)
{
	uintptr_t behind = (uintptr_t)return_address - call->address;
	return call->loaded && behind >= 1 && behind <= LONGEST_CALL;
}
