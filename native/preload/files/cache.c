#define _GNU_SOURCE
#include "cache.h"
#include <errno.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

/* No header of this C library has them yet. */
#define SYSCALL_CACHESTAT 451
struct cachestat_range {
	uint64_t offset, length;
};
struct cachestat {
	uint64_t cached, dirty, writeback, evicted, recently_evicted;
};

/* Pages of one call of mincore. */
#define MINCORE_PAGES 512

static int by_cachestat(int fd, uint64_t from, uint64_t to, struct cached *found)
{
	struct cachestat_range range = { from * PAGE_BYTES, (to - from) * PAGE_BYTES };
	struct cachestat counts;
	int before = errno;
	if (syscall(SYSCALL_CACHESTAT, fd, &range, &counts, 0) != 0) {
		errno = before;
		return 0;
	}
	*found = (struct cached){ counts.cached, counts.dirty + counts.writeback };
	return 1;
}

/* The flags of at most MINCORE_PAGES pages; needs a descriptor that reads. */
static int core_of(int fd, uint64_t from, uint64_t to, unsigned char *flags)
{
	int before = errno, seen = 0;
	size_t bytes = (to - from) * PAGE_BYTES;
	void *pages = mmap(NULL, bytes, PROT_NONE, MAP_SHARED, fd, (off_t)(from * PAGE_BYTES));
	if (pages != MAP_FAILED) {
		seen = mincore(pages, bytes, flags) == 0;
		munmap(pages, bytes);
	}
	errno = before;
	return seen;
}

static uint64_t lesser(uint64_t a, uint64_t b)
{
	return a < b ? a : b;
}

static int by_mincore(int fd, uint64_t from, uint64_t to, struct cached *found)
{
	unsigned char flags[MINCORE_PAGES];
	*found = (struct cached){ 0, 0 };
	for (uint64_t at = from; at < to; at += MINCORE_PAGES) {
		uint64_t end = lesser(to, at + MINCORE_PAGES);
		if (!core_of(fd, at, end, flags))
			return 0;
		for (uint64_t page = at; page < end; page++)
			found->pages += flags[page - at] & 1;
	}
	return 1;
}

int look(enum eyes eyes, int fd, uint64_t from, uint64_t to, struct cached *found)
{
	*found = (struct cached){ 0, 0 };
	if (from >= to)
		return 1;
	switch (eyes) {
	case EYES_CACHESTAT:
		return by_cachestat(fd, from, to, found);
	case EYES_MINCORE:
		return by_mincore(fd, from, to, found);
	default:
		return 0;
	}
}

static void set(uint64_t *map, uint64_t bits, uint64_t page, int value)
{
	uint64_t bit = page % bits, one = 1ull << bit % 64;
	map[bit / 64] = value ? map[bit / 64] | one : map[bit / 64] & ~one;
}

static void set_all(uint64_t *map, uint64_t bits, uint64_t from, uint64_t to, int value)
{
	for (uint64_t page = from; page < to;) {
		if (page % 64 == 0 && to - page >= 64) {
			map[page % bits / 64] = value ? ~0ull : 0;
			page += 64;
		} else {
			set(map, bits, page++, value);
		}
	}
}

/* cachestat gives a sum and no pages: halves the stretch until it is all in the page cache or none of it is. */
static int64_t mark_by_halves(int fd, uint64_t from, uint64_t to, uint64_t *map, uint64_t bits)
{
	struct cached found;
	if (!by_cachestat(fd, from, to, &found))
		return -1;
	if (found.pages == 0 || found.pages >= to - from) {
		set_all(map, bits, from, to, found.pages > 0);
		return (int64_t)found.pages;
	}
	uint64_t middle = from + (to - from) / 2;
	int64_t low = mark_by_halves(fd, from, middle, map, bits);
	int64_t high = low < 0 ? -1 : mark_by_halves(fd, middle, to, map, bits);
	return high < 0 ? -1 : low + high;
}

static int64_t mark_by_mincore(int fd, uint64_t from, uint64_t to, uint64_t *map, uint64_t bits)
{
	unsigned char flags[MINCORE_PAGES];
	int64_t pages = 0;
	for (uint64_t at = from; at < to; at += MINCORE_PAGES) {
		uint64_t end = lesser(to, at + MINCORE_PAGES);
		if (!core_of(fd, at, end, flags))
			return -1;
		for (uint64_t page = at; page < end; page++) {
			set(map, bits, page, flags[page - at] & 1);
			pages += flags[page - at] & 1;
		}
	}
	return pages;
}

int64_t mark_cached(enum eyes eyes, int fd, uint64_t from, uint64_t to, uint64_t *map, uint64_t bits)
{
	if (from >= to)
		return 0;
	switch (eyes) {
	case EYES_CACHESTAT:
		return mark_by_halves(fd, from, to, map, bits);
	case EYES_MINCORE:
		return mark_by_mincore(fd, from, to, map, bits);
	default:
		return -1;
	}
}

void begin_writing(int fd, uint64_t from, uint64_t to)
{
	int before = errno;
	if (from < to)
		syscall(SYS_sync_file_range, fd, (off_t)(from * PAGE_BYTES), (off_t)((to - from) * PAGE_BYTES),
		        SYNC_FILE_RANGE_WRITE); /* the C library's own may be cancelled */
	errno = before;
}

void drop(int fd, uint64_t from, uint64_t to)
{
	/* posix_fadvise returns its error and leaves errno. */
	if (from < to)
		posix_fadvise(fd, (off_t)(from * PAGE_BYTES), (off_t)((to - from) * PAGE_BYTES), POSIX_FADV_DONTNEED);
}
