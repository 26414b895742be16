#define _GNU_SOURCE
#include "behind.h"
#include <dlfcn.h>
#include <gnu/libc-version.h>
#include <link.h>

extern void *__libc_malloc(size_t);
extern void *__libc_calloc(size_t, size_t);
extern void *__libc_realloc(void *, size_t);

struct behind behind = { .malloc = __libc_malloc, .calloc = __libc_calloc, .realloc = __libc_realloc };

static __thread int searching __attribute__((tls_model("initial-exec")));

struct pair {
	const void *one, *other;
	int together;
};

static int holds(const struct dl_phdr_info *object, const void *address)
{
	for (int i = 0; i < object->dlpi_phnum; i++) {
		const ElfW(Phdr) *segment = &object->dlpi_phdr[i];
		uintptr_t from = object->dlpi_addr + segment->p_vaddr;
		if (segment->p_type == PT_LOAD && (uintptr_t)address - from < segment->p_memsz)
			return 1;
	}
	return 0;
}

static int look_for_both(struct dl_phdr_info *object, size_t size, void *given)
{
	struct pair *pair = given;
	(void)size;
	if (!holds(object, pair->one))
		return 0;
	pair->together = holds(object, pair->other);
	return 1;
}

/* Not by dladdr, which also looks for a name: through all symbols of the C library, at the start of every program. */
static int of_one_object(const void *one, const void *other)
{
	struct pair pair = { one, other, 0 };
	dl_iterate_phdr(look_for_both, &pair);
	return pair.together;
}

/* An allocator may lack this function, and the next library's would return, or be passed, blocks of another heap. */
static void *beside(const void *allocator, const char *name)
{
	void *function = dlsym(RTLD_NEXT, name);
	return of_one_object(function, allocator) ? function : NULL;
}

/* Threads that search at the same time find the same. */
void find_behind(void)
{
	if (searching)
		return;
	searching = 1;
	void *allocator = dlsym(RTLD_NEXT, "malloc");
	behind.aligned = (void *(*)(size_t, size_t))beside(allocator, "aligned_alloc");
	behind.usable = (size_t(*)(void *))beside(allocator, "malloc_usable_size");
	behind.calloc = (void *(*)(size_t, size_t))dlsym(RTLD_NEXT, "calloc");
	behind.realloc = (void *(*)(void *, size_t))dlsym(RTLD_NEXT, "realloc");
	behind.malloc = (void *(*)(size_t))allocator;
	atomic_store_explicit(&behind.found, 1, memory_order_release);
	searching = 0;
}

int behind_is_libc(void)
{
	return of_one_object((const void *)behind.malloc, (const void *)gnu_get_libc_version) && behind.aligned && behind.usable;
}
