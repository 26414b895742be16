#define _GNU_SOURCE
#include "streams.h"
#include "../kit/kit.h"
#include "deferred.h"
#include "glob.h"
#include "windows.h"
#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#define DESCRIPTORS 1024

/* Below it a request of its own costs the disk and the CPU more than the page cache would. */
#define LEAST_DONTCACHE (64 << 10)
/* The kernel drops what it read ahead by folios, and a folio of which a request took a part is read a second time: 47%
 * more bytes from the disk at 128 KiB a request. Windows read nothing twice. */
#define LEAST_DONTCACHE_READ (8 << 20)
/* The most bytes that the kernel moves by one call. */
#define MOST_BYTES 0x7ffff000ull

static struct stream streams[DESCRIPTORS];
/* Descriptors from it on had no request: a look at each would make a page of memory. */
static int used_end;
static const char *only_names;
static enum eyes given_eyes;
/* A child of vfork shares our memory, but not our descriptors. */
static pid_t owner;

void set_up(enum eyes eyes, const char *only)
{
	given_eyes = eyes;
	only_names = only;
	owner = getpid();
}

static int try_take(struct stream *stream)
{
	return !__atomic_exchange_n(&stream->busy, 1, __ATOMIC_ACQUIRE);
}

static void release(struct stream *stream)
{
	__atomic_store_n(&stream->busy, 0, __ATOMIC_RELEASE);
}

/* NULL before the beginning too. */
static struct stream *of(int fd)
{
	return owner && (unsigned)fd < DESCRIPTORS ? &streams[fd] : NULL;
}

static void note_used(int fd)
{
	int most = __atomic_load_n(&used_end, __ATOMIC_RELAXED);
	while (most <= fd && !__atomic_compare_exchange_n(&used_end, &most, fd + 1, 0, __ATOMIC_RELAXED, __ATOMIC_RELAXED))
		;
}

static int is_named(int fd)
{
	char name[MOST_NAME];
	return name_of(fd, name) && glob_fits(only_names, name);
}

/* Returns whether a file is all in its pages, or has none. */
static int is_memory(const struct statfs *system)
{
	switch ((unsigned long)system->f_type) {
	case TMPFS_MAGIC:
	case RAMFS_MAGIC:
	case HUGETLBFS_MAGIC:
	case PROC_SUPER_MAGIC:
	case SYSFS_MAGIC:
	case CGROUP_SUPER_MAGIC:
	case CGROUP2_SUPER_MAGIC:
	case DEBUGFS_MAGIC:
	case TRACEFS_MAGIC:
		return 1;
	default:
		return 0;
	}
}

/* An overlay has no pages of its own, and cachestat looks no deeper: what is cached would seem not to be. */
static enum eyes eyes_for(int fd, const struct statfs *system)
{
	struct cached found;
	if (given_eyes != EYES_CACHESTAT)
		return given_eyes;
	if ((unsigned long)system->f_type == OVERLAYFS_SUPER_MAGIC)
		return EYES_MINCORE;
	return look(EYES_CACHESTAT, fd, 0, 1, &found) ? EYES_CACHESTAT : EYES_MINCORE;
}

static enum kind kind_of(int fd, struct stream *stream, const struct stat *about)
{
	struct statfs system;
	int flags = fcntl(fd, F_GETFL);
	if (!S_ISREG(about->st_mode) || flags < 0 || flags & O_PATH || fstatfs(fd, &system) != 0)
		return KIND_OTHER;
	if (flags & O_DIRECT)
		return KIND_DIRECT;
	if (is_memory(&system))
		return KIND_MEMORY;
	if (only_names && !is_named(fd))
		return KIND_UNNAMED;
	begin_stream(stream, about, eyes_for(fd, &system), flags);
	count(FILES, 1);
	return KIND_TAKEN;
}

/* The stream is ours meanwhile. */
static void classify(int fd, struct stream *stream)
{
	struct stat about;
	note_used(fd);
	if (fstat(fd, &about) == 0)
		__atomic_store_n(&stream->kind, kind_of(fd, stream, &about), __ATOMIC_RELEASE);
}

static enum kind kind(int fd, struct stream *stream)
{
	enum kind known = __atomic_load_n(&stream->kind, __ATOMIC_ACQUIRE);
	if (__builtin_expect(known != KIND_UNKNOWN, 1))
		return known;
	int before = errno;
	if (try_take(stream)) {
		classify(fd, stream);
		release(stream);
	}
	errno = before;
	return __atomic_load_n(&stream->kind, __ATOMIC_ACQUIRE);
}

int is_taken(int fd)
{
	struct stream *stream = of(fd);
	return stream && kind(fd, stream) == KIND_TAKEN;
}

int is_under_way(int fd)
{
	struct stream *stream = of(fd);
	return stream && __atomic_load_n(&stream->kind, __ATOMIC_ACQUIRE) == KIND_TAKEN;
}

static int wants_dontcache(const struct stream *stream, enum direction direction, uint64_t bytes)
{
	uint64_t least = direction == WRITING ? LEAST_DONTCACHE : LEAST_DONTCACHE_READ;
	return !stream->refuses && bytes >= least && bytes <= MOST_BYTES;
}

/* The first request of a small file is often its last: the kernel then drops the pages by itself, and the program does
 * not wait for the disk when the file is closed. */
static int is_first_write(const struct stream *stream, enum direction direction)
{
	return direction == WRITING && !stream->refuses && !stream->has_written;
}

static enum way by_windows(int fd, struct stream *stream, enum direction direction, uint64_t offset, uint64_t bytes)
{
	if (__builtin_expect(was_looked_at(stream, offset, bytes), 1))
		return WAY_WINDOWS;
	int before = errno;
	enum way way = WAY_PLAIN;
	if (try_take(stream)) {
		struct stat about;
		if (fstat(fd, &about) == 0 && is_same_file(stream, &about)) {
			if (move_windows(fd, stream, direction, offset, bytes, &about))
				way = WAY_WINDOWS;
			else
				stream->blind = 1;
		} else {
			stream->kind = KIND_UNKNOWN; /* it was closed behind our back, and is another's now */
		}
		release(stream);
	}
	errno = before;
	return way;
}

/* The kernel appends at any offset. */
static uint64_t true_offset(const struct stream *stream, enum direction direction, uint64_t offset)
{
	return direction == WRITING && stream->appends ? AT_POSITION : offset;
}

enum way prepare_ordinary(int fd, enum direction direction, uint64_t offset, uint64_t bytes)
{
	struct stream *stream = of(fd);
	if (!stream || bytes == 0 || kind(fd, stream) != KIND_TAKEN || stream->blind)
		return WAY_PLAIN;
	return by_windows(fd, stream, direction, true_offset(stream, direction, offset), bytes);
}

enum way prepare(int fd, enum direction direction, uint64_t offset, uint64_t bytes)
{
	struct stream *stream = of(fd);
	if (!stream || bytes == 0 || kind(fd, stream) != KIND_TAKEN)
		return WAY_PLAIN;
	/* Looked at too: a page at the border of two requests may stay. */
	enum way way = prepare_ordinary(fd, direction, offset, bytes);
	if (wants_dontcache(stream, direction, bytes) || (way == WAY_WINDOWS && is_first_write(stream, direction)))
		return WAY_DONTCACHE;
	return way;
}

enum way refused(int fd, enum direction direction, uint64_t offset, uint64_t bytes)
{
	struct stream *stream = of(fd);
	if (!stream)
		return WAY_PLAIN;
	stream->refuses = 1;
	count(REFUSED, 1);
	return prepare(fd, direction, offset, bytes);
}

static void count_left(const struct stream *stream, uint64_t bytes)
{
	switch (stream->kind) {
	case KIND_DIRECT:
		count(LEFT_DIRECT, bytes);
		break;
	case KIND_UNNAMED:
		count(LEFT_UNNAMED, bytes);
		break;
	case KIND_MEMORY:
		count(LEFT_MEMORY, bytes);
		break;
	case KIND_TAKEN:
		count(stream->blind ? LEFT_UNSEEN : LEFT_CROWDED, bytes);
		break;
	default:
		break;
	}
}

/* The kernel drops no page that is written again while the disk writes it: one at the border of two requests. Nor one
 * that is overwritten in place: the disk's interrupt reports that it is written, and drops nothing. */
static void note_written(struct stream *stream, enum way way, ssize_t bytes)
{
	if (way == WAY_WINDOWS || stream->has_border || overwrites(stream))
		stream->is_dirty = 1;
	stream->has_written = 1;
	stream->has_border |= bytes % (ssize_t)PAGE_BYTES || stream->from % PAGE_BYTES;
}

void passed(int fd, enum direction direction, enum way way, uint64_t offset, ssize_t bytes)
{
	struct stream *stream = of(fd);
	if (!stream || bytes <= 0)
		return;
	if (way == WAY_PLAIN) {
		count_left(stream, (uint64_t)bytes);
		return;
	}
	if (direction == WRITING)
		note_written(stream, way, bytes);
	if (true_offset(stream, direction, offset) == AT_POSITION)
		__atomic_fetch_sub(&stream->budget, bytes, __ATOMIC_RELAXED);
	if (way == WAY_DONTCACHE)
		count(DONTCACHE, (uint64_t)bytes);
	else
		__atomic_fetch_add(&stream->uncounted, (uint64_t)bytes, __ATOMIC_RELAXED);
}

void moved(int fd, off_t position)
{
	struct stream *stream = of(fd);
	if (stream && stream->kind == KIND_TAKEN && position >= 0)
		set_position(stream, (uint64_t)position);
}

void leave(int fd)
{
	struct stream *stream = of(fd);
	if (!stream || stream->kind == KIND_UNKNOWN || !is_own_process() || !try_take(stream))
		return;
	int before = errno;
	struct stat about;
	if (stream->kind == KIND_TAKEN && fstat(fd, &about) == 0 && is_same_file(stream, &about))
		end_windows(fd, stream);
	__atomic_store_n(&stream->kind, KIND_UNKNOWN, __ATOMIC_RELEASE);
	release(stream);
	errno = before;
}

void leave_range(unsigned first, unsigned last)
{
	for (unsigned fd = first; fd <= last && fd < (unsigned)used_end; fd++)
		leave((int)fd);
}

int is_own_process(void)
{
	return owner && getpid() == owner;
}

void forget_parents(void)
{
	owner = getpid();
	forget_deferred();
	for (int fd = 0; fd < used_end; fd++) {
		streams[fd].busy = 0;
		streams[fd].kind = KIND_UNKNOWN;
	}
	used_end = 0;
}
