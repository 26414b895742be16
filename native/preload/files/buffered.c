/* The C library's buffered files call its own read and write, which no other library can stand before. So this one
 * stands before the program's calls, and looks at the pages that the buffer may bring in. Other calls of a program
 * (printf, getc) are seen at the next of these calls. */
#define _GNU_SOURCE
#include "../kit/kit.h"
#include "real.h"
#include "request.h"
#include "streams.h"
#include <errno.h>
#include <stdio_ext.h>
#include <string.h>

#undef fread_unlocked
#undef fwrite_unlocked

struct touch {
	int fd;
	enum direction direction;
	enum way way;
};

static struct touch begin_touch(FILE *file, enum direction direction, uint64_t bytes)
{
	int before = errno, fd = fileno_unlocked(file);
	errno = before;
	return (struct touch){ fd, direction, prepare_ordinary(fd, direction, AT_POSITION, bytes) };
}

static void end_touch(const struct touch *touch, uint64_t bytes)
{
	passed(touch->fd, touch->direction, touch->way, AT_POSITION, (ssize_t)bytes);
}

static uint64_t product(size_t size, size_t count)
{
	size_t bytes;
	return __builtin_mul_overflow(size, count, &bytes) ? 0 : bytes;
}

/* A long one is read step by step, as in ordinary_read. */
static size_t read_in_steps(size_t (*read)(void *, size_t, size_t, FILE *), char *buffer, size_t bytes, FILE *file)
{
	size_t done = 0, got, step;
	do {
		step = bytes - done < STEP_BYTES ? bytes - done : STEP_BYTES;
		struct touch touch = begin_touch(file, READING, step);
		got = read(buffer + done, 1, step, file);
		end_touch(&touch, got);
		done += got;
	} while (got == step && done < bytes);
	return done;
}

#define READS(name)                                                                    \
	EXPORT size_t name(void *buffer, size_t size, size_t count, FILE *file)            \
	{                                                                                  \
		need_real();                                                                   \
		uint64_t bytes = product(size, count);                                         \
		if (bytes > STEP_BYTES)                                                        \
			return read_in_steps(real.name, buffer, bytes, file) / size;               \
		struct touch touch = begin_touch(file, READING, bytes);                        \
		size_t done = real.name(buffer, size, count, file);                            \
		end_touch(&touch, product(size, done));                                        \
		return done;                                                                   \
	}
READS(fread)
READS(fread_unlocked)

#define READS_CHECKED(name, checked, plain)                                                     \
	EXPORT size_t name(void *buffer, size_t room, size_t size, size_t count, FILE *file)        \
	{                                                                                           \
		need_real();                                                                            \
		size_t bytes;                                                                           \
		if (__builtin_mul_overflow(size, count, &bytes) || bytes > room)                        \
			return real.checked(buffer, room, size, count, file);                               \
		return plain(buffer, size, count, file);                                                \
	}
READS_CHECKED(__fread_chk, fread_chk, fread)
READS_CHECKED(__fread_unlocked_chk, fread_unlocked_chk, fread_unlocked)

#define WRITES(name)                                                                   \
	EXPORT size_t name(const void *buffer, size_t size, size_t count, FILE *file)      \
	{                                                                                  \
		need_real();                                                                   \
		struct touch touch = begin_touch(file, WRITING, product(size, count));         \
		size_t done = real.name(buffer, size, count, file);                            \
		end_touch(&touch, product(size, done));                                        \
		return done;                                                                   \
	}
WRITES(fwrite)
WRITES(fwrite_unlocked)

#define READS_LINE(name)                                                                        \
	EXPORT char *name(char *line, int room, FILE *file)                                         \
	{                                                                                           \
		need_real();                                                                            \
		struct touch touch = begin_touch(file, READING, room > 0 ? (uint64_t)room : 0);         \
		char *done = real.name(line, room, file);                                               \
		end_touch(&touch, done ? strlen(done) : 0);                                             \
		return done;                                                                            \
	}
READS_LINE(fgets)
READS_LINE(fgets_unlocked)

#define WRITES_LINE(name)                                                  \
	EXPORT int name(const char *line, FILE *file)                          \
	{                                                                      \
		need_real();                                                       \
		size_t bytes = strlen(line);                                       \
		struct touch touch = begin_touch(file, WRITING, bytes);            \
		int done = real.name(line, file);                                  \
		end_touch(&touch, done < 0 ? 0 : bytes);                           \
		return done;                                                       \
	}
WRITES_LINE(fputs)
WRITES_LINE(fputs_unlocked)

EXPORT ssize_t __getdelim(char **line, size_t *room, int delimiter, FILE *file)
{
	need_real();
	struct touch touch = begin_touch(file, READING, 1);
	ssize_t done = real.getdelim(line, room, delimiter, file);
	end_touch(&touch, done > 0 ? (uint64_t)done : 0);
	return done;
}
EXPORT extern __typeof__(__getdelim) getdelim __attribute__((alias("__getdelim"), copy(__getdelim)));

EXPORT ssize_t getline(char **line, size_t *room, FILE *file)
{
	return getdelim(line, room, '\n', file);
}

EXPORT int fclose(FILE *file)
{
	need_real();
	int before = errno, fd = fileno_unlocked(file);
	if (fd >= 0 && is_under_way(fd) && (!__fwriting(file) || fflush(file) == 0))
		leave(fd);
	errno = before;
	return real.fclose(file);
}
