/* Reads line by line without memory of its own: the allocator may be at work. */
#define _GNU_SOURCE
#include "smaps.h"
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define LINE_BYTES 256

struct lines {
	int fd;
	size_t begin, end;
	char buffer[4096];
	char line[LINE_BYTES];
};

static int next_byte(struct lines *lines)
{
	if (lines->begin == lines->end) {
		ssize_t got = read(lines->fd, lines->buffer, sizeof lines->buffer);
		if (got <= 0)
			return -1;
		lines->begin = 0;
		lines->end = (size_t)got;
	}
	return (unsigned char)lines->buffer[lines->begin++];
}

/* The next line, of which the end may be left out. */
static int next_line(struct lines *lines)
{
	size_t length = 0;
	int byte = next_byte(lines);
	if (byte < 0)
		return 0;
	for (; byte >= 0 && byte != '\n'; byte = next_byte(lines))
		if (length < LINE_BYTES - 1)
			lines->line[length++] = (char)byte;
	lines->line[length] = 0;
	return 1;
}

uint64_t large_bytes(void)
{
	static const char name[] = "AnonHugePages:";
	struct lines lines = { .fd = open("/proc/self/smaps_rollup", O_RDONLY | O_CLOEXEC) };
	uint64_t bytes = 0;
	if (lines.fd < 0)
		return 0;
	while (!bytes && next_line(&lines))
		if (strncmp(lines.line, name, sizeof name - 1) == 0)
			bytes = strtoull(lines.line + sizeof name - 1, NULL, 10) * 1024;
	close(lines.fd);
	return bytes;
}

/* "START-END rw-p OFFSET DEVICE INODE NAME": those of inode 0, the heap among them. */
static int is_anonymous(const char *line, uintptr_t *start, uintptr_t *end)
{
	char *at;
	*start = strtoull(line, &at, 16);
	if (*at != '-')
		return 0;
	*end = strtoull(at + 1, &at, 16);
	if (strncmp(at, " rw-p ", 6) != 0)
		return 0;
	at = strchr(at + 6, ' ');
	at = at ? strchr(at + 1, ' ') : NULL;
	return at && strtoull(at, NULL, 10) == 0 && !strstr(at, "[stack") && !strstr(at, "[v");
}

void each_anonymous(void (*each)(uintptr_t start, size_t bytes))
{
	struct lines lines = { .fd = open("/proc/self/maps", O_RDONLY | O_CLOEXEC) };
	uintptr_t start, end;
	if (lines.fd < 0)
		return;
	while (next_line(&lines))
		if (is_anonymous(lines.line, &start, &end))
			each(start, end - start);
	close(lines.fd);
}
