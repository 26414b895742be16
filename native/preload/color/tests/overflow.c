/* Writes one byte behind a large block. */
#include <stdlib.h>

int main(void)
{
	for (int i = 0; i < 4; i++) {
		volatile char *volatile block = malloc(1 << 20);
		block[(1 << 20) - (i < 3)] = 1;
		free((void *)block);
	}
	return 0;
}
