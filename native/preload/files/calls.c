/* The C library's reads and writes of descriptors: those of regular files leave nothing in the page cache. */
#define _GNU_SOURCE
#include "../kit/kit.h"
#include "real.h"
#include "request.h"
#include "streams.h"
#include <errno.h>
#include <unistd.h>

#define ALSO_NAMED(name, same) EXPORT extern __typeof__(same) name __attribute__((alias(#same), copy(same)))

EXPORT ssize_t read(int fd, void *buffer, size_t bytes)
{
	need_real();
	struct iovec part = { buffer, bytes };
	struct request request = begin_request(fd, READING, AT_POSITION, bytes);
	ssize_t done = request.way == WAY_DONTCACHE ? kept_out(&request, &part, 1) : NOT_TAKEN;
	if (is_long(&request))
		return in_steps(&request, buffer);
	return end_request(&request, done == NOT_TAKEN ? real.read(fd, buffer, bytes) : done);
}

EXPORT ssize_t pread(int fd, void *buffer, size_t bytes, off_t offset)
{
	need_real();
	struct iovec part = { buffer, bytes };
	struct request request = begin_request_at(fd, READING, offset, bytes);
	ssize_t done = request.way == WAY_DONTCACHE ? kept_out(&request, &part, 1) : NOT_TAKEN;
	if (is_long(&request))
		return in_steps(&request, buffer);
	return end_request(&request, done == NOT_TAKEN ? real.pread(fd, buffer, bytes, offset) : done);
}
ALSO_NAMED(pread64, pread);

/* The compiler calls this where the buffer's size is known. The C library's own ends the program if it is too small. */
EXPORT ssize_t __read_chk(int fd, void *buffer, size_t bytes, size_t room)
{
	need_real();
	return bytes > room ? real.read_chk(fd, buffer, bytes, room) : read(fd, buffer, bytes);
}

EXPORT ssize_t __pread_chk(int fd, void *buffer, size_t bytes, off_t offset, size_t room)
{
	need_real();
	return bytes > room ? real.pread_chk(fd, buffer, bytes, offset, room) : pread(fd, buffer, bytes, offset);
}
ALSO_NAMED(__pread64_chk, __pread_chk);

EXPORT ssize_t readv(int fd, const struct iovec *parts, int count)
{
	need_real();
	struct request request = begin_request(fd, READING, AT_POSITION, vector_bytes(fd, parts, count));
	ssize_t done = request.way == WAY_DONTCACHE ? kept_out(&request, parts, count) : NOT_TAKEN;
	return end_request(&request, done == NOT_TAKEN ? real.readv(fd, parts, count) : done);
}

EXPORT ssize_t preadv(int fd, const struct iovec *parts, int count, off_t offset)
{
	need_real();
	struct request request = begin_request_at(fd, READING, offset, vector_bytes(fd, parts, count));
	ssize_t done = request.way == WAY_DONTCACHE ? kept_out(&request, parts, count) : NOT_TAKEN;
	return end_request(&request, done == NOT_TAKEN ? real.preadv(fd, parts, count, offset) : done);
}
ALSO_NAMED(preadv64, preadv);

EXPORT ssize_t preadv2(int fd, const struct iovec *parts, int count, off_t offset, int flags)
{
	if (flags == 0)
		return offset == -1 ? readv(fd, parts, count) : preadv(fd, parts, count, offset);
	need_real();
	struct request request = begin_flagged(fd, READING, offset, vector_bytes(fd, parts, count), flags);
	return end_request(&request, real.preadv2(fd, parts, count, offset, flags));
}
ALSO_NAMED(preadv64v2, preadv2);

EXPORT ssize_t write(int fd, const void *buffer, size_t bytes)
{
	need_real();
	struct iovec part = { (void *)buffer, bytes };
	struct request request = begin_request(fd, WRITING, AT_POSITION, bytes);
	ssize_t done = request.way == WAY_DONTCACHE ? kept_out(&request, &part, 1) : NOT_TAKEN;
	return end_request(&request, done == NOT_TAKEN ? real.write(fd, buffer, bytes) : done);
}

EXPORT ssize_t pwrite(int fd, const void *buffer, size_t bytes, off_t offset)
{
	need_real();
	struct iovec part = { (void *)buffer, bytes };
	struct request request = begin_request_at(fd, WRITING, offset, bytes);
	ssize_t done = request.way == WAY_DONTCACHE ? kept_out(&request, &part, 1) : NOT_TAKEN;
	return end_request(&request, done == NOT_TAKEN ? real.pwrite(fd, buffer, bytes, offset) : done);
}
ALSO_NAMED(pwrite64, pwrite);

EXPORT ssize_t writev(int fd, const struct iovec *parts, int count)
{
	need_real();
	struct request request = begin_request(fd, WRITING, AT_POSITION, vector_bytes(fd, parts, count));
	ssize_t done = request.way == WAY_DONTCACHE ? kept_out(&request, parts, count) : NOT_TAKEN;
	return end_request(&request, done == NOT_TAKEN ? real.writev(fd, parts, count) : done);
}

EXPORT ssize_t pwritev(int fd, const struct iovec *parts, int count, off_t offset)
{
	need_real();
	struct request request = begin_request_at(fd, WRITING, offset, vector_bytes(fd, parts, count));
	ssize_t done = request.way == WAY_DONTCACHE ? kept_out(&request, parts, count) : NOT_TAKEN;
	return end_request(&request, done == NOT_TAKEN ? real.pwritev(fd, parts, count, offset) : done);
}
ALSO_NAMED(pwritev64, pwritev);

EXPORT ssize_t pwritev2(int fd, const struct iovec *parts, int count, off_t offset, int flags)
{
	if (flags == 0)
		return offset == -1 ? writev(fd, parts, count) : pwritev(fd, parts, count, offset);
	need_real();
	struct request request = begin_flagged(fd, WRITING, offset, vector_bytes(fd, parts, count), flags);
	return end_request(&request, real.pwritev2(fd, parts, count, offset, flags));
}
ALSO_NAMED(pwritev64v2, pwritev2);
