/* Gives homes to memory as the preloaded library does, and reads from the kernel which policy each page has. */
#define _GNU_SOURCE
#include "../rules.h"
#include <link.h>
#include <linux/mempolicy.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#define PAGE 4096

static size_t homed, refused;

void count_home(size_t bytes, int failed)
{
	homed += failed ? 0 : bytes;
	refused += (size_t)failed;
}

static int take_base(struct dl_phdr_info *object, size_t size, void *base)
{
	(void)size;
	*(uintptr_t *)base = object->dlpi_addr;
	return 1; /* the program comes first */
}

static char policy(char *page)
{
	int mode = -1;
	if (syscall(SYS_get_mempolicy, &mode, NULL, 0, page, MPOL_F_ADDR) != 0)
		return '?';
	return mode == MPOL_DEFAULT ? '.' : mode == MPOL_PREFERRED ? 'n' : mode == MPOL_INTERLEAVE ? 'i' : '?';
}

/* Prints the homes given to a call at this linked address, page by page. */
static void print_homes(uintptr_t base, uintptr_t linked, size_t pages)
{
	char *memory = mmap(NULL, pages * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (memory == MAP_FAILED)
		exit(1);
	give_homes(memory, pages * PAGE - 100, (void *)(base + linked + 5));
	for (size_t i = 0; i < pages; i++)
		putchar(policy(memory + i * PAGE));
	putchar('\n');
}

int main(void)
{
	char own[4096], list[8192];
	uintptr_t base = 0;
	ssize_t length = readlink("/proc/self/exe", own, sizeof own - 1);
	if (length < 0)
		return 1;
	own[length] = 0;
	const char *name = strrchr(own, '/') + 1;
	dl_iterate_phdr(take_base, &base);
	snprintf(list, sizeof list, "%s+100:0-2000=0;%s+100#1:2000-ffffffffffffffff=i;%s+200:1800-2800=i;absent+300:0-1000=0",
		 name, name, name);
	printf("%u rules\n", read_rules(list, 1));
	print_homes(base, 0x100, 4); /* the first time: the first rule alone */
	print_homes(base, 0x100, 4); /* the second: both */
	print_homes(base, 0x200, 4); /* whole pages, by where a part begins and ends */
	print_homes(base, 0x300, 2); /* of a file that is not loaded */
	print_homes(base, 0x100 + 4, 2); /* returns nine bytes behind the call */
	printf("%zu pages, %zu refused\n", homed / PAGE, refused);
	return 0;
}
