/* The library that `loader` loads. */
#include <stdlib.h>

void frees(void *block)
{
	free(block);
}

void *makes(size_t bytes)
{
	return malloc(bytes);
}
