/* Built as code at a fixed address that takes malloc's: its malloc has an address of the program's own, and is the
 * library's all the same. */
#include "check.h"

static void *(*volatile allocate)(size_t);

int main(void)
{
	/* In code, which no relocation can reach: the address becomes an entry of the program's. */
	allocate = malloc;
	for (int i = 0; i < 8; i++) {
		char *volatile block = allocate(1 << 20);
		CHECK(block);
		free(block);
	}
	return 0;
}
