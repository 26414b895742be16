/* Begins and ends with the program. */
#define _GNU_SOURCE
#include "../kit/kit.h"
#include "deferred.h"
#include "real.h"
#include "streams.h"
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define MOST_LETTERS 4096

static char only[MOST_LETTERS];

__attribute__((constructor)) static void begin(void)
{
	need_real();
	const char *list = getenv("NEARMISS_FILES_PRELOAD");
	const char *names = getenv("NEARMISS_FILES_ONLY");
	if (!list)
		return;
	announce(list, "files");
	/* The program may change its environment. */
	if (names && strlen(names) < MOST_LETTERS)
		strcpy(only, names);
	set_up((enum eyes)parameter(list, "eyes", 10), *only ? only : NULL);
	pthread_atfork(NULL, NULL, forget_parents);
}

/* A child of vfork has the parent's memory, and leaves what is in it alone. */
static void finish(void)
{
	if (!is_own_process())
		return;
	leave_range(0, ~0u);
	end_deferred();
}

__attribute__((destructor)) static void end(void)
{
	finish();
}

/* Shells end so, without their end functions. */
EXPORT _Noreturn void _exit(int status)
{
	need_real();
	finish();
	real._exit(status);
	__builtin_unreachable();
}
EXPORT extern __typeof__(_exit) _Exit __attribute__((alias("_exit"), copy(_exit)));
