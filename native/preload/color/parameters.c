#include "parameters.h"
#include <stdlib.h>

void begin_coloring(const char *library, struct parameters *parameters)
{
	const char *list = getenv("NEARMISS_COLOR_PRELOAD");
	if (!list)
		return;
	uint64_t colors = parameter(list, "colors", 10), line = parameter(list, "line", 10);
	if (colors >= 1 && colors <= 1024 && line >= 16 && line <= 1024 && !(line & (line - 1))) {
		parameters->colors = (uint32_t)colors;
		parameters->step = (uint32_t)parameter(list, "step", 10) % 1024;
		parameters->line_bytes = (uint32_t)line;
		parameters->block_bytes = parameter(list, "least", 10);
	}
	announce(list, library);
}
