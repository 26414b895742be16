#define _GNU_SOURCE
#include "request.h"
#include "real.h"
#include <errno.h>
#include <sys/syscall.h>
#include <unistd.h>

/* Not in the headers of this C library. */
#define FLAG_APPEND 0x10
#define FLAG_DONTCACHE 0x80

/* The kernel takes no more of them. */
#define MOST_PARTS 1024
#define PARTS_AT_ONCE 64

struct request begin_request(int fd, enum direction direction, uint64_t offset, uint64_t bytes)
{
	return (struct request){ fd, direction, prepare(fd, direction, offset, bytes), offset, bytes, errno };
}

struct request begin_request_at(int fd, enum direction direction, off_t offset, uint64_t bytes)
{
	return begin_request(fd, direction, (uint64_t)offset, offset < 0 ? 0 : bytes);
}

struct request begin_flagged(int fd, enum direction direction, off_t offset, uint64_t bytes, int flags)
{
	enum way way = flags & (FLAG_DONTCACHE | FLAG_APPEND) ? WAY_PLAIN
	                                                      : prepare_ordinary(fd, direction, (uint64_t)offset, bytes);
	return (struct request){ fd, direction, way, (uint64_t)offset, bytes, errno };
}

int is_refusal(int error)
{
	return error == EOPNOTSUPP || error == ENOSYS || error == EINVAL || error == EPERM;
}

ssize_t kept_out(struct request *request, const struct iovec *parts, int count)
{
	__typeof__(real.preadv2) transfer = request->direction == READING ? real.preadv2 : real.pwritev2;
	/* AT_POSITION is the kernel's -1. */
	ssize_t done = transfer ? transfer(request->fd, parts, count, (off_t)request->offset, FLAG_DONTCACHE) : NOT_TAKEN;
	if (done >= 0 || (done == -1 && !is_refusal(errno)))
		return done;
	errno = request->error_before;
	request->way = refused(request->fd, request->direction, request->offset, request->bytes);
	return NOT_TAKEN;
}

static ssize_t one_read(const struct request *request, char *buffer, size_t done, size_t bytes)
{
	return request->offset == AT_POSITION ? real.read(request->fd, buffer + done, bytes)
	                                      : real.pread(request->fd, buffer + done, bytes, (off_t)(request->offset + done));
}

int is_long(const struct request *request)
{
	return request->way == WAY_WINDOWS && request->bytes > STEP_BYTES;
}

static ssize_t read_step(const struct request *request, char *buffer, size_t done, size_t step)
{
	uint64_t at = request->offset == AT_POSITION ? AT_POSITION : request->offset + done;
	enum way way = prepare_ordinary(request->fd, READING, at, step);
	ssize_t got = one_read(request, buffer, done, step);
	passed(request->fd, READING, way, at, got);
	return got;
}

ssize_t in_steps(const struct request *request, char *buffer)
{
	size_t done = 0, step;
	ssize_t got;
	do {
		step = request->bytes - done < STEP_BYTES ? request->bytes - done : STEP_BYTES;
		got = read_step(request, buffer, done, step);
		done += got > 0 ? (size_t)got : 0;
	} while (got > 0 && (size_t)got == step && done < request->bytes);
	if (got < 0 && done == 0)
		return -1;
	errno = request->error_before;
	return (ssize_t)done;
}

ssize_t end_request(const struct request *request, ssize_t done)
{
	passed(request->fd, request->direction, request->way, request->offset, done);
	return done;
}

int fetch(void *to, const void *from, size_t bytes)
{
	struct iovec here = { to, bytes }, there = { (void *)from, bytes };
	int before = errno;
	int done = syscall(SYS_process_vm_readv, getpid(), &here, 1, &there, 1, 0) == (long)bytes;
	errno = before;
	return done;
}

uint64_t vector_bytes(int fd, const struct iovec *parts, int count)
{
	struct iovec copied[PARTS_AT_ONCE];
	uint64_t bytes = 0;
	if (count <= 0 || count > MOST_PARTS || !is_taken(fd))
		return 0;
	for (int at = 0; at < count; at += PARTS_AT_ONCE) {
		int n = count - at < PARTS_AT_ONCE ? count - at : PARTS_AT_ONCE;
		if (!fetch(copied, parts + at, (size_t)n * sizeof *parts))
			return 0;
		for (int i = 0; i < n; i++)
			bytes += copied[i].iov_len;
	}
	return bytes;
}
