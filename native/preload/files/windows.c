#define _GNU_SOURCE
#include "windows.h"
#include "../kit/kit.h"
#include "../kit/rests.h"
#include "deferred.h"
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#define WINDOW_BYTES (4ull << 20)
#define WINDOW_PAGES (WINDOW_BYTES / PAGE_BYTES)
/* Written pages that may be on their way to the disk before the program waits for it. */
#define LAG_PAGES ((32ull << 20) / PAGE_BYTES)
/* Stride of a stream that begins, or goes on elsewhere: a program that reads here and there pays for each look. */
#define LEAST_STRIDE (256ull << 10)
/* The kernel reads ahead twice its setting at most, which is 128 KiB to 8 MiB or twice that, and comes to that by doubling
 * too, or at once by a long request. */
#define STRIDES_AHEAD 8
#define REQUESTS_AHEAD 4
#define MOST_AHEAD (32ull << 20)
/* Requests beyond it are looked at as a whole. */
#define LONG_BYTES (32ull << 20)

void begin_stream(struct stream *stream, const struct stat *about, enum eyes eyes, int flags)
{
	stream->device = about->st_dev;
	stream->inode = about->st_ino;
	stream->eyes = eyes;
	stream->appends = (flags & O_APPEND) != 0;
	stream->size_before = (uint64_t)about->st_size;
	stream->noted = NO_REST;
	stream->refuses = stream->has_written = stream->has_border = stream->is_dirty = stream->blind = stream->gave_up = 0;
	stream->from = stream->upto = stream->uncounted = 0;
	stream->budget = 0;
	stream->trail = stream->low = stream->begun = stream->high = 0;
	stream->stride = LEAST_STRIDE;
}

int was_looked_at(const struct stream *stream, uint64_t offset, uint64_t bytes)
{
	if (offset == AT_POSITION) {
		int64_t left = __atomic_load_n(&stream->budget, __ATOMIC_RELAXED);
		return left > 0 && bytes <= (uint64_t)left;
	}
	return offset >= stream->from && offset < stream->upto && bytes <= stream->upto - offset;
}

void set_position(struct stream *stream, uint64_t position)
{
	int within = position >= stream->from && position < stream->upto;
	int64_t budget = within ? (int64_t)(stream->upto - position) : 0;
	__atomic_store_n(&stream->budget, budget, __ATOMIC_RELAXED);
}

int is_same_file(const struct stream *stream, const struct stat *about)
{
	return stream->device == about->st_dev && stream->inode == about->st_ino;
}

static uint64_t lesser(uint64_t a, uint64_t b)
{
	return a < b ? a : b;
}

static uint64_t greater(uint64_t a, uint64_t b)
{
	return a > b ? a : b;
}

static int was_cached(const struct stream *stream, uint64_t page)
{
	uint64_t bit = page % REMEMBERED_PAGES;
	return stream->was_cached[bit / 64] >> bit % 64 & 1;
}

static uint64_t end_of_run(const struct stream *stream, uint64_t page, uint64_t to)
{
	int value = was_cached(stream, page);
	while (page < to && was_cached(stream, page) == value)
		page++;
	return page;
}

/* Drops the pages below `to` that were not in the page cache before. A run that follows on what was dropped before is
 * dropped together with it: a folio that lies across a border goes only with all of its pages. */
static void drop_runs(int fd, struct stream *stream, uint64_t to)
{
	for (uint64_t page = stream->low; page < to;) {
		uint64_t end = end_of_run(stream, page, to);
		if (was_cached(stream, page)) {
			stream->trail = end;
		} else {
			if (page != stream->low)
				stream->trail = page;
			drop(fd, stream->trail, end);
		}
		page = end;
	}
	if (to - stream->trail > WINDOW_PAGES)
		stream->trail = to - WINDOW_PAGES;
}

static uint64_t cached_before(const struct stream *stream, uint64_t from, uint64_t to)
{
	uint64_t pages = 0;
	for (uint64_t page = from; page < to;) {
		uint64_t end = lesser(to, (page / 64 + 1) * 64);
		uint64_t word = stream->was_cached[page % REMEMBERED_PAGES / 64] >> page % 64;
		pages += (uint64_t)__builtin_popcountll(end - page == 64 ? word : word & ((1ull << (end - page)) - 1));
		page = end;
	}
	return pages;
}

/* Whether the pages below `to` need not be remembered any more. 0: the disk still has some to write. */
static int give_back(int fd, struct stream *stream, uint64_t to)
{
	struct cached before, after;
	uint64_t from = stream->trail;
	if (!look(stream->eyes, fd, from, to, &before))
		return 1;
	if (before.unwritten && stream->is_dirty)
		return 0;
	/* Unseen pages are not dropped either, and a program that did not write waits for no writing of others. */
	if (before.pages > before.unwritten) {
		drop_runs(fd, stream, to);
		if (look(stream->eyes, fd, from, to, &after) && after.pages < before.pages)
			count(GIVEN_BACK, (before.pages - after.pages) * PAGE_BYTES);
	} else {
		stream->trail = to;
	}
	count(KEPT, cached_before(stream, stream->low, to) * PAGE_BYTES);
	stream->low = to;
	return 1;
}

static int give_back_patiently(int fd, struct stream *stream, uint64_t to)
{
	for (int i = 0; i < NAPS && !stream->gave_up; i++) {
		if (give_back(fd, stream, to))
			return 1;
		nap();
		/* A page that was written again while the disk wrote it was passed over. */
		begin_writing(fd, stream->low, to);
	}
	stream->gave_up = 1;
	return 0;
}

static void abandon(int fd, struct stream *stream, uint64_t to)
{
	struct cached found;
	if (look(stream->eyes, fd, stream->low, to, &found))
		count(LEFT_UNWRITTEN, found.pages * PAGE_BYTES);
	stream->trail = stream->low = to;
}

/* Gives back the pages below `to`; waits for the disk while more than `lag` pages are not given back. */
static void settle(int fd, struct stream *stream, uint64_t to, uint64_t lag)
{
	if (stream->is_dirty && stream->begun < to) {
		begin_writing(fd, greater(stream->begun, stream->low), to);
		stream->begun = to;
	}
	while (stream->low < to) {
		uint64_t end = lesser(to, (stream->low / WINDOW_PAGES + 1) * WINDOW_PAGES);
		if (give_back(fd, stream, end))
			continue;
		if (to - stream->low <= lag)
			return;
		if (!give_back_patiently(fd, stream, end))
			abandon(fd, stream, end);
	}
}

static void report(struct stream *stream)
{
	uint64_t bytes = __atomic_exchange_n(&stream->uncounted, 0, __ATOMIC_RELAXED);
	if (bytes)
		count(WINDOWS, bytes);
}

/* Returns whether none of the pages that are left was in the page cache before: then one stretch covers all. */
static int is_all_new(const struct stream *stream)
{
	return !was_cached(stream, stream->low) && end_of_run(stream, stream->low, stream->high) == stream->high;
}

/* Returns the pages from `from` on that are there and were not before, though all were given back: others use them, the
 * kernel was still reading them ahead, or another process has written them. Pages that the program has written, if
 * nothing else was to be done, the kernel drops when the disk has them. */
static uint64_t stayed(int fd, const struct stream *stream, uint64_t from, uint64_t low)
{
	struct cached now;
	int is_kernels = stream->has_written && !stream->is_dirty;
	if (is_kernels || stream->gave_up || !look(stream->eyes, fd, from, stream->high, &now))
		return 0;
	uint64_t expected = cached_before(stream, low, stream->high);
	return now.pages > expected ? now.pages - expected : 0;
}

static int put_off_rest(int fd, struct stream *stream, uint64_t from)
{
	struct rest rest = { stream->device, stream->inode, stream->eyes, from, stream->high,
		                     stream->is_dirty, stream->noted };
	set_rest(stream->noted, from, stream->high, 0);
	if (!put_off(fd, &rest))
		return 0;
	stream->noted = NO_REST;
	return 1;
}

/* Once more, after a moment; at last it is counted. */
static void see_to_what_stayed(int fd, struct stream *stream, uint64_t from, uint64_t low)
{
	uint64_t pages = stayed(fd, stream, from, low);
	if (pages == 0 || (cached_before(stream, low, stream->high) == 0 && put_off_rest(fd, stream, from)))
		return;
	for (int i = 0; i < FEW_NAPS && pages; i++) {
		nap();
		stream->trail = from;
		stream->low = low;
		drop_runs(fd, stream, stream->high);
		pages = stayed(fd, stream, from, low);
	}
	stream->low = stream->high;
	count(LEFT_BEHIND, pages * PAGE_BYTES);
}

static void end_all(int fd, struct stream *stream)
{
	uint64_t from = stream->trail, low = stream->low;
	settle(fd, stream, stream->high, REMEMBERED_PAGES);
	if (stream->low < stream->high && is_all_new(stream) && put_off_rest(fd, stream, stream->trail))
		return;
	settle(fd, stream, stream->high, 0);
	see_to_what_stayed(fd, stream, from, low);
}

void end_windows(int fd, struct stream *stream)
{
	report(stream);
	end_all(fd, stream);
	end_rest(stream->noted);
	stream->noted = NO_REST;
}

int overwrites(const struct stream *stream)
{
	return stream->from < stream->size_before;
}

/* For nearmiss, should the program be killed. */
static void note_rest(int fd, struct stream *stream)
{
	char name[MOST_NAME];
	if (stream->noted == NO_REST && name_of(fd, name))
		stream->noted = begin_rest(stream->device, stream->inode, name);
	set_rest(stream->noted, stream->trail, stream->high, cached_before(stream, stream->low, stream->high) > 0);
}

static uint64_t position(int fd, const struct stream *stream, enum direction direction, const struct stat *about)
{
	if (direction == WRITING && stream->appends)
		return (uint64_t)about->st_size;
	off_t at = lseek(fd, 0, SEEK_CUR);
	return at < 0 ? 0 : (uint64_t)at;
}

/* The stream goes on elsewhere. It does not wait: a program that writes here and there would wait for the disk at every
 * jump. */
static void jump(int fd, struct stream *stream, uint64_t page)
{
	uint64_t from = stream->trail, low = stream->low;
	settle(fd, stream, stream->high, REMEMBERED_PAGES);
	if (stream->low < stream->high)
		abandon(fd, stream, stream->high);
	else if (low < stream->high)
		count(LEFT_BEHIND, stayed(fd, stream, from, low) * PAGE_BYTES);
	stream->trail = stream->low = stream->begun = stream->high = page;
	stream->stride = LEAST_STRIDE;
}

static int look_ahead(int fd, struct stream *stream, uint64_t needed, uint64_t bytes, uint64_t file_pages)
{
	uint64_t ahead = greater(STRIDES_AHEAD * stream->stride, lesser(REQUESTS_AHEAD * bytes, MOST_AHEAD));
	uint64_t to = greater(needed, lesser(needed + ahead / PAGE_BYTES, file_pages));
	to = lesser(to, stream->low + REMEMBERED_PAGES);
	if (to <= stream->high)
		return 1;
	if (mark_cached(stream->eyes, fd, stream->high, to, stream->was_cached, REMEMBERED_PAGES) < 0)
		return 0;
	stream->high = to;
	return 1;
}

int move_windows(int fd, struct stream *stream, enum direction direction, uint64_t offset, uint64_t bytes,
                 const struct stat *about)
{
	uint64_t at = offset == AT_POSITION ? position(fd, stream, direction, about) : offset;
	uint64_t page = at / PAGE_BYTES;
	report(stream);
	if (page < stream->low || page > stream->high)
		jump(fd, stream, page);
	else
		settle(fd, stream, page, LAG_PAGES);
	uint64_t reach = lesser(greater(bytes, stream->stride), LONG_BYTES);
	uint64_t needed = (at + reach + PAGE_BYTES - 1) / PAGE_BYTES;
	stream->stride = lesser(2 * stream->stride, WINDOW_BYTES);
	if (!look_ahead(fd, stream, needed, bytes, ((uint64_t)about->st_size + PAGE_BYTES - 1) / PAGE_BYTES))
		return 0;
	note_rest(fd, stream);
	stream->from = at;
	stream->upto = at + reach;
	__atomic_store_n(&stream->budget, (int64_t)reach, __ATOMIC_RELAXED);
	return 1;
}
