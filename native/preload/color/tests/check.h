/* Ends the probe with the line that failed. */
#ifndef CHECK_H
#define CHECK_H

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#define CHECK(condition)                                                                       \
	do {                                                                                   \
		if (!(condition)) {                                                            \
			dprintf(2, "%s:%d: %s\n", __FILE__, __LINE__, #condition);             \
			_exit(1);                                                              \
		}                                                                              \
	} while (0)

#endif
