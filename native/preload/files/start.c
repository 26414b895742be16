/* Begins and ends with the program. */
#define _GNU_SOURCE
#include "../kit/kit.h"
#include "real.h"
#include "streams.h"
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

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

__attribute__((destructor)) static void end(void)
{
	leave_range(0, ~0u);
}
