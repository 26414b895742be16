// SPDX-License-Identifier: MIT OR Apache-2.0
#define _GNU_SOURCE
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#define ROUNDS 15000000

struct board {
	atomic_ulong parent;
#ifdef TWIN
	char pad[120];
#endif
	atomic_ulong child;
};

static void count(atomic_ulong *c)
{
	for (int i = 0; i < ROUNDS; i++)
		atomic_fetch_add_explicit(c, 1, memory_order_relaxed);
}

int main(void)
{
	struct board *board = mmap(NULL, 4096, PROT_READ | PROT_WRITE,
				   MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (board == MAP_FAILED)
		return 1;
	pid_t pid = fork();
	if (pid == 0) {
		count(&board->child);
		_exit(0);
	}
	count(&board->parent);
	waitpid(pid, NULL, 0);
	printf("%lu\n", (unsigned long)(board->parent + board->child));
	return 0;
}
