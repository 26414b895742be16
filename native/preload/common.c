#include "common.h"
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

static struct nearmiss_report *_Atomic shared;

struct nearmiss_report *report(void)
{
	return atomic_load_explicit(&shared, memory_order_acquire);
}

/* The number after `key=` in a comma-separated list; 0 when there is none. */
static uint64_t value(const char *list, const char *key, int base)
{
	size_t length = strlen(key);
	for (const char *at = list; at; at = strchr(at, ',')) {
		if (*at == ',')
			at++;
		if (strncmp(at, key, length) == 0 && at[length] == '=')
			return strtoull(at + length + 1, NULL, base);
	}
	return 0;
}

static struct nearmiss_report *map(int fd, uint64_t token)
{
	struct stat about;
	/* The number may by now belong to a file of the program's own. */
	if (fd < 0 || fstat(fd, &about) < 0 || !S_ISREG(about.st_mode) ||
	    about.st_size < (off_t)sizeof(struct nearmiss_report))
		return NULL;
	void *page = mmap(NULL, sizeof(struct nearmiss_report), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (page == MAP_FAILED)
		return NULL;
	struct nearmiss_report *found = page;
	if (found->magic == NEARMISS_REPORT_MAGIC && found->token == token)
		return found;
	munmap(page, sizeof(struct nearmiss_report));
	return NULL;
}

/* "/proc/PID/fd/FD", without the formatted printing that is not ready at early start. */
static void proc_path(char *out, uint64_t pid, uint64_t fd)
{
	const uint64_t numbers[2] = { pid, fd };
	const char *const names[2] = { "/proc/", "/fd/" };
	for (int i = 0; i < 2; i++) {
		char digits[20];
		int n = 0;
		for (uint64_t rest = numbers[i]; n == 0 || rest; rest /= 10)
			digits[n++] = (char)('0' + rest % 10);
		out = stpcpy(out, names[i]);
		while (n)
			*out++ = digits[--n];
	}
	*out = 0;
}

void announce(int part, struct parameters *parameters)
{
	const char *list = getenv(NEARMISS_PRELOAD_ENV);
	if (!list)
		return;
	int before = errno;
	uint64_t colors = value(list, "colors", 10), line = value(list, "line", 10);
	if (colors >= 1 && colors <= 1024 && line >= 16 && line <= 1024 && !(line & (line - 1))) {
		parameters->colors = (uint32_t)colors;
		parameters->step = (uint32_t)value(list, "step", 10) % 1024;
		parameters->line_bytes = (uint32_t)line;
		parameters->block_bytes = value(list, "blocks", 10);
	}
	uint64_t fd = value(list, "fd", 10), token = value(list, "token", 16);
	struct nearmiss_report *found = map((int)fd, token);
	if (!found) {
		char path[64];
		proc_path(path, value(list, "pid", 10), fd);
		int opened = open(path, O_RDWR | O_CLOEXEC);
		if (opened >= 0) {
			found = map(opened, token);
			close(opened);
		}
	}
	if (found) {
		struct nearmiss_part *own = &found->parts[part];
		uint64_t n = __atomic_fetch_add(&own->processes, 1, __ATOMIC_RELAXED);
		if (n < NEARMISS_REPORT_PIDS)
			__atomic_store_n(&own->pids[n], getpid(), __ATOMIC_RELEASE);
		atomic_store_explicit(&shared, found, memory_order_release);
	}
	errno = before;
}
