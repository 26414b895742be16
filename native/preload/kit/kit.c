#include "kit.h"
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

/* The compiler's start files define it, and the libraries are linked without them: pthread_atfork finds by it the
 * handlers that go when a library is unloaded. */
__attribute__((visibility("hidden"))) void *__dso_handle = &__dso_handle;

static struct nearmiss_part *_Atomic part;

struct nearmiss_part *own_part(void)
{
	return atomic_load_explicit(&part, memory_order_acquire);
}

static struct nearmiss_rest *_Atomic rests;

struct nearmiss_rest *own_rests(void)
{
	return atomic_load_explicit(&rests, memory_order_acquire);
}

static void write_note(struct nearmiss_note *note, unsigned about, const char *text, size_t length)
{
	uint64_t words[NEARMISS_NOTE_WORDS] = { 0 };
	for (size_t i = 0; i < length; i++)
		words[i / 8] |= (uint64_t)(unsigned char)text[i] << i % 8 * 8;
	for (int i = 0; i < NEARMISS_NOTE_WORDS; i++)
		__atomic_store_n(&note->text[i], words[i], __ATOMIC_RELAXED);
	__atomic_store_n(&note->about, about + 1ull, __ATOMIC_RELEASE);
}

void report_note(unsigned about, const char *text)
{
	struct nearmiss_part *own = own_part();
	size_t length = strlen(text);
	if (!own || length >= NEARMISS_NOTE_WORDS * 8)
		return;
	if (__atomic_load_n(&own->notes_begun, __ATOMIC_RELAXED) >= NEARMISS_NOTES)
		return;
	uint64_t n = __atomic_fetch_add(&own->notes_begun, 1, __ATOMIC_RELAXED);
	if (n < NEARMISS_NOTES)
		write_note(&own->notes[n], about, text, length);
}

uint64_t parameter(const char *list, const char *key, int base)
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

static struct nearmiss_page *map(int fd, uint64_t token)
{
	struct stat about;
	/* The number may by now belong to a file of the program's own. */
	if (fd < 0 || fstat(fd, &about) < 0 || !S_ISREG(about.st_mode) ||
	    about.st_size < (off_t)sizeof(struct nearmiss_page))
		return NULL;
	void *page = mmap(NULL, sizeof(struct nearmiss_page), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (page == MAP_FAILED)
		return NULL;
	struct nearmiss_page *found = page;
	if (found->magic == NEARMISS_PAGE_MAGIC && found->token == token)
		return found;
	munmap(page, sizeof(struct nearmiss_page));
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

void announce(const char *list, const char *library)
{
	int before = errno;
	uint64_t fd = parameter(list, "fd", 10), token = parameter(list, "token", 16);
	uint64_t number = parameter(list, library, 10);
	struct nearmiss_page *found = map((int)fd, token);
	if (!found) {
		char path[64];
		proc_path(path, parameter(list, "pid", 10), fd);
		int opened = open(path, O_RDWR | O_CLOEXEC);
		if (opened >= 0) {
			found = map(opened, token);
			close(opened);
		}
	}
	if (found && number < NEARMISS_PARTS) {
		struct nearmiss_part *own = &found->parts[number];
		uint64_t n = __atomic_fetch_add(&own->programs, 1, __ATOMIC_RELAXED);
		if (n < NEARMISS_PIDS)
			__atomic_store_n(&own->pids[n], getpid(), __ATOMIC_RELEASE);
		atomic_store_explicit(&rests, found->rests, memory_order_release);
		atomic_store_explicit(&part, own, memory_order_release);
	}
	errno = before;
}
