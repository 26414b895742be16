/* memcpy and its relatives for a program: the copies of chosen call sites go past the caches, all others are the C
 * library's.
 *
 * Plain functions, no indirect ones: the loader may run resolvers before this library is relocated, and calls of others'
 * resolvers and constructors come here before our own constructor. Until then there is nothing behind us, and what lies
 * in the library's data holds no address; a copy then is a copy of bytes. */
#define _GNU_SOURCE
#include "../kit/kit.h"
#include "places.h"
#include "sites.h"
#include "streams.h"
#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>

#define RARELY(condition) __builtin_expect(!!(condition), 0)
#define RETURNS ((uintptr_t)__builtin_extract_return_addr(__builtin_return_address(0)))

/* As crates/remedies/src/bypass/copies/apply/mod.rs names them; then three for each site. */
enum {
	LEFT,        /* copies of the least size and more that are no chosen site's */
	LEFT_BYTES,
	OVERLAPPING, /* of a chosen site, and left as they were */
	NO_STORES,   /* programs on a CPU without stores that go past the caches */
	OF_SITES,
};
enum { CALLS, BYTES, PLACES, OF_A_SITE };
_Static_assert(OF_SITES + MOST_SITES * OF_A_SITE <= NEARMISS_COUNTERS, "counters of all sites have a place");

/* No copy is so large: none is looked at until the parameters are known. */
static size_t least_bytes = SIZE_MAX;
static int streams;

/* The functions of the C library, or of the next library. */
static void *(*next_memcpy)(void *, const void *, size_t);
static void *(*next_memmove)(void *, const void *, size_t);
static void *(*next_mempcpy)(void *, const void *, size_t);
static void *(*next_memset)(void *, int, size_t);
static void *(*next_memcpy_chk)(void *, const void *, size_t, size_t);
static void *(*next_memmove_chk)(void *, const void *, size_t, size_t);
static void *(*next_mempcpy_chk)(void *, const void *, size_t, size_t);
static void *(*next_memset_chk)(void *, int, size_t, size_t);

#define FIND(name) (next_##name = (__typeof__(next_##name))dlsym(RTLD_NEXT, #name))
#define FIND_CHECKED(name) (next_##name##_chk = (__typeof__(next_##name##_chk))dlsym(RTLD_NEXT, "__" #name "_chk"))

__attribute__((constructor)) static void begin(void)
{
	FIND(memcpy), FIND(memmove), FIND(mempcpy), FIND(memset);
	FIND_CHECKED(memcpy), FIND_CHECKED(memmove), FIND_CHECKED(mempcpy), FIND_CHECKED(memset);
	const char *list = getenv("NEARMISS_BYPASS_PRELOAD");
	if (!list)
		return;
	announce(list, "copies");
	unsigned sites = learn_sites(getenv("NEARMISS_BYPASS_SITES"));
	for (unsigned i = 0; i < sites; i++)
		count(OF_SITES + i * OF_A_SITE + PLACES, places_of(i));
	streams = choose_stores(LINE_BYTES) > 0;
	if (!streams)
		count(NO_STORES, 1);
	uint64_t least = parameter(list, "least", 10);
	least_bytes = least < LEAST_STREAM_BYTES ? LEAST_STREAM_BYTES : least;
}

/* Returns the site of this copy, or NO_SITE; counts it. */
__attribute__((noinline)) static int chosen(size_t bytes, uintptr_t returns)
{
	int site = streams ? site_of(returns) : NO_SITE;
	unsigned counter = site == NO_SITE ? LEFT : OF_SITES + (unsigned)site * OF_A_SITE;
	count(counter, 1);
	count(counter + 1, bytes);
	return site;
}

static int overlap(const void *to, const void *from, size_t bytes)
{
	return (uintptr_t)to - (uintptr_t)from < bytes || (uintptr_t)from - (uintptr_t)to < bytes;
}

/* Returns whether it has been copied. If the two overlap, the target's lines are in the caches as the source's. */
static int copied(void *to, const void *from, size_t bytes, uintptr_t returns)
{
	if (chosen(bytes, returns) == NO_SITE)
		return 0;
	if (overlap(to, from, bytes)) {
		count(OVERLAPPING, 1);
		return 0;
	}
	stream_copy(to, from, bytes);
	return 1;
}

static int filled(void *to, int byte, size_t bytes, uintptr_t returns)
{
	if (chosen(bytes, returns) == NO_SITE)
		return 0;
	stream_fill(to, byte, bytes);
	return 1;
}

/* Before the constructor. Volatile, or the compiler would make a call of memcpy of it. */
__attribute__((noinline, cold)) static void *copy_early(void *to, const void *from, size_t bytes)
{
	volatile char *target = to;
	const volatile char *source = from;
	if ((uintptr_t)to - (uintptr_t)from < bytes)
		while (bytes--)
			target[bytes] = source[bytes];
	else
		for (size_t i = 0; i < bytes; i++)
			target[i] = source[i];
	return to;
}

__attribute__((noinline, cold)) static void *fill_early(void *to, int byte, size_t bytes)
{
	volatile char *target = to;
	while (bytes--)
		*target++ = (char)byte;
	return to;
}

EXPORT void *memcpy(void *to, const void *from, size_t bytes)
{
	if (RARELY(bytes >= least_bytes) && copied(to, from, bytes, RETURNS))
		return to;
	return RARELY(!next_memcpy) ? copy_early(to, from, bytes) : next_memcpy(to, from, bytes);
}

EXPORT void *memmove(void *to, const void *from, size_t bytes)
{
	if (RARELY(bytes >= least_bytes) && copied(to, from, bytes, RETURNS))
		return to;
	return RARELY(!next_memmove) ? copy_early(to, from, bytes) : next_memmove(to, from, bytes);
}

EXPORT void *mempcpy(void *to, const void *from, size_t bytes)
{
	if (RARELY(bytes >= least_bytes) && copied(to, from, bytes, RETURNS))
		return (char *)to + bytes;
	return RARELY(!next_mempcpy) ? (char *)copy_early(to, from, bytes) + bytes : next_mempcpy(to, from, bytes);
}

EXPORT void *__mempcpy(void *, const void *, size_t) __attribute__((alias("mempcpy"), copy(mempcpy)));

EXPORT void *memset(void *to, int byte, size_t bytes)
{
	if (RARELY(bytes >= least_bytes) && filled(to, byte, bytes, RETURNS))
		return to;
	return RARELY(!next_memset) ? fill_early(to, byte, bytes) : next_memset(to, byte, bytes);
}

/* The fortified forms take how many bytes there are room for; too many are the C library's to report, which ends the
 * program. */
EXPORT void *__memcpy_chk(void *to, const void *from, size_t bytes, size_t room)
{
	if (RARELY(bytes >= least_bytes) && bytes <= room && copied(to, from, bytes, RETURNS))
		return to;
	return RARELY(!next_memcpy_chk) ? copy_early(to, from, bytes) : next_memcpy_chk(to, from, bytes, room);
}

EXPORT void *__memmove_chk(void *to, const void *from, size_t bytes, size_t room)
{
	if (RARELY(bytes >= least_bytes) && bytes <= room && copied(to, from, bytes, RETURNS))
		return to;
	return RARELY(!next_memmove_chk) ? copy_early(to, from, bytes) : next_memmove_chk(to, from, bytes, room);
}

EXPORT void *__mempcpy_chk(void *to, const void *from, size_t bytes, size_t room)
{
	if (RARELY(bytes >= least_bytes) && bytes <= room && copied(to, from, bytes, RETURNS))
		return (char *)to + bytes;
	return RARELY(!next_mempcpy_chk) ? (char *)copy_early(to, from, bytes) + bytes : next_mempcpy_chk(to, from, bytes, room);
}

EXPORT void *__memset_chk(void *to, int byte, size_t bytes, size_t room)
{
	if (RARELY(bytes >= least_bytes) && bytes <= room && filled(to, byte, bytes, RETURNS))
		return to;
	return RARELY(!next_memset_chk) ? fill_early(to, byte, bytes) : next_memset_chk(to, byte, bytes, room);
}
