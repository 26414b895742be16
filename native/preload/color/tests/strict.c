/* Allocates where any system call but write and exit ends the process. */
#define _GNU_SOURCE
#include "check.h"
#include <linux/seccomp.h>
#include <sys/prctl.h>
#include <sys/syscall.h>

int main(void)
{
	/* The heap is there; through a volatile pointer, or the compiler leaves the allocation out. */
	void *volatile first = malloc(1);
	free(first);
	CHECK(prctl(PR_SET_SECCOMP, SECCOMP_MODE_STRICT) == 0);
	for (int i = 0; i < 8; i++) {
		char *volatile block = i % 2 ? malloc(8192) : calloc(2, 4096);
		CHECK(block);
		block[8191] = 1;
	}
	CHECK(write(1, "alive\n", 6) == 6);
	return (int)syscall(SYS_exit, 0);
}
