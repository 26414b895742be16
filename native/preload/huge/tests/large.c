/* Allocates memory in several ways, uses it, and prints of each whether the kernel put it into large pages. With an
 * argument: `where` prints the first call as a site; `early` ends without the destructors of libraries. */
#define _GNU_SOURCE
#include <link.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define BYTES (16ul << 20)
#define LEAST_LARGE (8ul << 20)

static char zeros[BYTES];

/* A call of malloc with a name for its address. */
__asm__(".text\n"
	"first: sub $8, %rsp\n"
	"first_call: call malloc@plt\n"
	"add $8, %rsp\n"
	"ret\n");
extern void *first(size_t bytes);
extern char first_call[];

static unsigned long large_bytes(void)
{
	char line[256];
	unsigned long kilobytes = 0;
	FILE *file = fopen("/proc/self/smaps_rollup", "r");
	while (file && fgets(line, sizeof line, file))
		if (sscanf(line, "AnonHugePages: %lu kB", &kilobytes) == 1)
			break;
	if (file)
		fclose(file);
	return kilobytes * 1024;
}

static void use(const char *name, char *memory, size_t bytes)
{
	unsigned long before = large_bytes();
	for (size_t i = 0; memory && i < bytes; i += 4096)
		memory[i] = 1;
	printf("%s %s\n", name, large_bytes() - before >= LEAST_LARGE ? "large" : "small");
}

static int print_site(struct dl_phdr_info *object, size_t size, void *name)
{
	(void)size;
	printf("%s+0x%lx\n", (char *)name, (unsigned long)first_call - object->dlpi_addr);
	return 1; /* the program comes first */
}

int main(int argc, char **argv)
{
	if (argc > 1 && strcmp(argv[1], "where") == 0)
		return !dl_iterate_phdr(print_site, strrchr(argv[0], '/') + 1);
	use("first", first(BYTES), BYTES);
	use("malloc", malloc(BYTES), BYTES);
	use("calloc", calloc(2, BYTES / 2), BYTES);
	use("realloc", realloc(malloc(10), BYTES), BYTES);
	use("mmap", mmap(NULL, BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0), BYTES);
	use("zeros", zeros, sizeof zeros);
	/* Small blocks, which the heap is made of. */
	unsigned long before = large_bytes();
	for (size_t i = 0; i < BYTES / 1000; i++)
		memset(malloc(1000), 1, 1000);
	printf("heap %s\n", large_bytes() - before >= LEAST_LARGE ? "large" : "small");
	fflush(stdout);
	if (argc > 1)
		_exit(0);
	return 0;
}
