/* Copies that the kernel makes between two descriptors. */
#define _GNU_SOURCE
#include "../kit/kit.h"
#include "real.h"
#include "request.h"
#include "streams.h"
#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/vfs.h>
#include <unistd.h>

/* Bytes between a read and the write behind it. */
#define BUFFER_BYTES (1 << 20)
#define FLAG_DONTCACHE 0x80

#define XFS_MAGIC 0x58465342
#define BCACHEFS_MAGIC 0xca451a4e
#define CIFS_MAGIC 0xff534d42
#define OCFS2_MAGIC 0x7461636f

/* One side of a copy. */
struct side {
	int fd;
	off_t *given; /* where the program keeps the offset, or NULL for the position */
	off_t at;
};

/* File systems that copy by sharing blocks, or on their server: no page is filled. */
static int copies_without_pages(int fd)
{
	struct statfs system;
	if (fstatfs(fd, &system) != 0)
		return 1;
	switch ((unsigned long)system.f_type) {
	case BTRFS_SUPER_MAGIC:
	case NFS_SUPER_MAGIC:
	case SMB2_SUPER_MAGIC:
	case CEPH_SUPER_MAGIC:
	case XFS_MAGIC:
	case BCACHEFS_MAGIC:
	case CIFS_MAGIC:
	case OCFS2_MAGIC:
		return 1;
	default:
		return 0;
	}
}

static int find_offset(struct side *side)
{
	if (side->given)
		return fetch(&side->at, side->given, sizeof side->at) && side->at >= 0;
	side->at = lseek(side->fd, 0, SEEK_CUR);
	return side->at >= 0;
}

/* As the program would have it after the kernel's own copy. */
static void put_offset(const struct side *side, off_t at)
{
	if (side->given)
		*side->given = at;
	else
		moved(side->fd, real.lseek(side->fd, at, SEEK_SET));
}

/* The raw calls: the buffer would be lost if the thread were cancelled in the C library's. */
static ssize_t transfer(int fd, enum direction direction, char *buffer, size_t bytes, off_t offset)
{
	struct request request = begin_request_at(fd, direction, offset, bytes);
	struct iovec part = { buffer, bytes };
	ssize_t done = NOT_TAKEN;
	if (request.way == WAY_DONTCACHE) {
		long vector = direction == READING ? SYS_preadv2 : SYS_pwritev2;
		done = syscall(vector, fd, &part, 1, offset, 0, FLAG_DONTCACHE);
		if (done < 0 && is_refusal(errno)) {
			request.way = refused(fd, direction, (uint64_t)offset, bytes);
			done = NOT_TAKEN;
		}
	}
	if (done == NOT_TAKEN)
		done = syscall(direction == READING ? SYS_pread64 : SYS_pwrite64, fd, buffer, bytes, offset);
	return end_request(&request, done);
}

static ssize_t copy_through(char *buffer, size_t room, const struct side *in, const struct side *out, size_t bytes)
{
	size_t done = 0;
	while (done < bytes) {
		size_t wanted = bytes - done < room ? bytes - done : room;
		ssize_t got = transfer(in->fd, READING, buffer, wanted, in->at + (off_t)done);
		ssize_t put = got > 0 ? transfer(out->fd, WRITING, buffer, (size_t)got, out->at + (off_t)done) : got;
		if (put < 0 && done == 0)
			return -1;
		if (put <= 0)
			break;
		done += (size_t)put;
		if (put < got)
			break;
	}
	return (ssize_t)done;
}

static ssize_t copy_by_hand(struct side *in, struct side *out, size_t bytes)
{
	int before = errno;
	size_t room = bytes < BUFFER_BYTES ? bytes : BUFFER_BYTES;
	char *buffer = mmap(NULL, room, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
	if (buffer == MAP_FAILED) {
		errno = before;
		return NOT_TAKEN;
	}
	ssize_t done = copy_through(buffer, room, in, out, bytes);
	int failure = done < 0 ? errno : before;
	munmap(buffer, room);
	if (done > 0) {
		put_offset(in, in->at + done);
		put_offset(out, out->at + done);
		count(COPIES, 1);
	}
	errno = failure;
	return done;
}

/* Whether the copy is for us; `bytes` then ends where the source does. A copy that the kernel would refuse it refuses
 * for no bytes too, but for stretches of one file that overlap. */
static int is_for_us(struct side *in, struct side *out, size_t *bytes)
{
	struct stat source, target;
	if (*bytes == 0 || !(is_taken(in->fd) || is_taken(out->fd)) || copies_without_pages(out->fd))
		return 0;
	if (fstat(in->fd, &source) != 0 || fstat(out->fd, &target) != 0 || !S_ISREG(source.st_mode) || !S_ISREG(target.st_mode))
		return 0;
	if (source.st_dev == target.st_dev && source.st_ino == target.st_ino)
		return 0;
	if (!find_offset(in) || !find_offset(out) || in->at >= source.st_size)
		return 0;
	if ((size_t)(source.st_size - in->at) < *bytes)
		*bytes = (size_t)(source.st_size - in->at);
	return real.copy_file_range(in->fd, in->given, out->fd, out->given, 0, 0) == 0;
}

EXPORT ssize_t copy_file_range(int in_fd, off_t *in_offset, int out_fd, off_t *out_offset, size_t bytes, unsigned flags)
{
	need_real();
	struct side in = { in_fd, in_offset, 0 }, out = { out_fd, out_offset, 0 };
	size_t within = bytes;
	int before = errno;
	ssize_t done = NOT_TAKEN;
	if (flags == 0 && is_for_us(&in, &out, &within)) {
		errno = before;
		done = copy_by_hand(&in, &out, within);
	}
	if (done != NOT_TAKEN)
		return done;
	errno = before;
	return real.copy_file_range(in_fd, in_offset, out_fd, out_offset, bytes, flags);
}

static uint64_t offset_of(const off_t *given)
{
	off_t at;
	if (!given)
		return AT_POSITION;
	return fetch(&at, given, sizeof at) && at >= 0 ? (uint64_t)at : AT_POSITION;
}

static ssize_t send_step(int out, int in, off_t *offset, size_t step)
{
	uint64_t from = offset_of(offset);
	enum way reading = prepare_ordinary(in, READING, from, step);
	enum way writing = prepare_ordinary(out, WRITING, AT_POSITION, step);
	ssize_t sent = real.sendfile(out, in, offset, step);
	passed(in, READING, reading, from, sent);
	passed(out, WRITING, writing, AT_POSITION, sent);
	return sent;
}

/* Step by step, since the pages of a long call would all be in the page cache before one is given back. */
EXPORT ssize_t sendfile(int out, int in, off_t *offset, size_t bytes)
{
	need_real();
	if (!is_taken(in) && !is_taken(out))
		return real.sendfile(out, in, offset, bytes);
	size_t done = 0, step;
	ssize_t sent;
	int before = errno;
	do {
		step = bytes - done < STEP_BYTES ? bytes - done : STEP_BYTES;
		sent = send_step(out, in, offset, step);
		done += sent > 0 ? (size_t)sent : 0;
	} while (sent > 0 && (size_t)sent == step && done < bytes);
	if (sent < 0 && done == 0)
		return -1;
	errno = before;
	return (ssize_t)done;
}
EXPORT extern __typeof__(sendfile) sendfile64 __attribute__((alias("sendfile"), copy(sendfile)));

EXPORT ssize_t splice(int in, off_t *in_offset, int out, off_t *out_offset, size_t bytes, unsigned flags)
{
	need_real();
	/* One side is a pipe, which holds no more than a megabyte. */
	size_t step = bytes < STEP_BYTES ? bytes : STEP_BYTES;
	uint64_t from = is_taken(in) ? offset_of(in_offset) : AT_POSITION;
	uint64_t to = is_taken(out) ? offset_of(out_offset) : AT_POSITION;
	enum way reading = prepare_ordinary(in, READING, from, step);
	enum way writing = prepare_ordinary(out, WRITING, to, step);
	ssize_t moved_bytes = real.splice(in, in_offset, out, out_offset, bytes, flags);
	passed(in, READING, reading, from, moved_bytes);
	passed(out, WRITING, writing, to, moved_bytes);
	return moved_bytes;
}
