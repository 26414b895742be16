#define _GNU_SOURCE
#include "deferred.h"
#include "../kit/kit.h"
#include "../kit/rests.h"
#include "streams.h"
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#define MOST_FILES 128
#define NAP_NS 500000

struct deferred {
	struct rest rest;
	char name[MOST_NAME];
};

/* A ring: `first` is the oldest. */
static struct deferred files[MOST_FILES];
static unsigned first, waiting;
static int busy, gave_up, naps_for_used = FEW_NAPS;

void nap(void)
{
	struct timespec time = { 0, NAP_NS };
	/* Not the C library's, which may be cancelled. */
	syscall(SYS_clock_nanosleep, CLOCK_MONOTONIC, 0, &time, NULL);
}

int name_of(int fd, char name[MOST_NAME])
{
	char link[40] = "/proc/self/fd/", digits[12];
	int n = 0, at = (int)strlen(link);
	for (int rest = fd; n == 0 || rest; rest /= 10)
		digits[n++] = (char)('0' + rest % 10);
	while (n)
		link[at++] = digits[--n];
	link[at] = 0;
	ssize_t length = readlink(link, name, MOST_NAME);
	if (length <= 0 || length >= MOST_NAME)
		return 0;
	name[length] = 0;
	return name[0] == '/';
}

static int is_file(const struct rest *rest, const struct stat *about)
{
	return S_ISREG(about->st_mode) && about->st_dev == rest->device && about->st_ino == rest->inode;
}

/* A descriptor of the file, or -1 where the name is another's by now. */
static int open_again(const struct deferred *file)
{
	struct stat about;
	if (fstatat(AT_FDCWD, file->name, &about, AT_SYMLINK_NOFOLLOW) != 0 || !is_file(&file->rest, &about))
		return -1;
	int flags = O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY;
	return (int)syscall(SYS_openat, AT_FDCWD, file->name, flags);
}

/* Whether the disk has all of the pages; a page that was written again meanwhile is handed to it once more. */
static int is_written(int fd, const struct rest *rest, struct cached *found)
{
	if (!look(rest->eyes, fd, rest->from, rest->to, found) || found->unwritten == 0)
		return 1;
	begin_writing(fd, rest->from, rest->to);
	return 0;
}

static void give_back(int fd, const struct rest *rest, struct cached *found)
{
	uint64_t before = found->pages;
	drop(fd, rest->from, rest->to);
	if (!look(rest->eyes, fd, rest->from, rest->to, found))
		found->pages = 0;
	count(GIVEN_BACK, before > found->pages ? (before - found->pages) * PAGE_BYTES : 0);
}

/* mincore does not distinguish pages that the disk has still to write from pages in use. */
static int has_patience(const struct rest *rest)
{
	static int naps_for_unseen = NAPS;
	return (rest->eyes == EYES_MINCORE && rest->is_dirty ? naps_for_unseen-- : naps_for_used--) > 0;
}

/* Whether the file needs not be remembered any more. */
static int see_to(const struct deferred *file, int patiently)
{
	struct cached found = { 0, 0 };
	int fd = open_again(file);
	if (fd < 0)
		return 1;
	int written = is_written(fd, &file->rest, &found);
	for (int i = 0; !written && patiently && !gave_up; i++) {
		nap();
		written = is_written(fd, &file->rest, &found);
		gave_up = i >= NAPS;
	}
	if (written)
		give_back(fd, &file->rest, &found);
	while (written && found.pages && patiently && has_patience(&file->rest)) {
		nap();
		give_back(fd, &file->rest, &found);
	}
	if (patiently)
		count(written ? LEFT_BEHIND : LEFT_UNWRITTEN, found.pages * PAGE_BYTES);
	syscall(SYS_close, fd);
	return (written && found.pages == 0) || patiently;
}

static void see_to_oldest(int patiently)
{
	if (waiting && see_to(&files[first], patiently)) {
		end_rest(files[first].rest.noted);
		first = (first + 1) % MOST_FILES;
		waiting--;
	}
}

static int try_begin(void)
{
	return !__atomic_exchange_n(&busy, 1, __ATOMIC_ACQUIRE);
}

static void finish(void)
{
	__atomic_store_n(&busy, 0, __ATOMIC_RELEASE);
}

int put_off(int fd, const struct rest *rest)
{
	int before = errno, done = 0;
	if (!try_begin())
		return 0;
	see_to_oldest(waiting == MOST_FILES);
	if (waiting < MOST_FILES) {
		struct deferred *file = &files[(first + waiting) % MOST_FILES];
		file->rest = *rest;
		done = name_of(fd, file->name);
		waiting += (unsigned)done;
	}
	finish();
	errno = before;
	return done;
}

void end_deferred(void)
{
	int before = errno;
	if (!try_begin())
		return;
	while (waiting)
		see_to_oldest(1);
	finish();
	errno = before;
}

void forget_deferred(void)
{
	waiting = 0;
	busy = 0;
}
