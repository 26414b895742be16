/* Calls of memcpy and its relatives from functions that a test names or omits; every result is compared. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define APART __attribute__((noinline, noclone))

enum { BYTES = 10000, ROOM = 1 << 16 };

extern void *__memcpy_chk(void *, const void *, size_t, size_t);
extern void *__memmove_chk(void *, const void *, size_t, size_t);
extern void *__mempcpy_chk(void *, const void *, size_t, size_t);
extern void *__memset_chk(void *, int, size_t, size_t);

static unsigned char from[ROOM], to[ROOM];

static void check(int good, const char *what)
{
	if (good)
		return;
	printf("%s\n", what);
	exit(1);
}

static void is_copied(const void *result, const void *wanted, const char *what)
{
	check(result == wanted && memcmp(to, from, BYTES) == 0 && to[BYTES] == 0, what);
	for (size_t i = 0; i < ROOM; i++)
		((volatile unsigned char *)to)[i] = 0;
}

/* The size comes from outside, or the compiler would copy without a call. */
APART void chosen(size_t bytes)
{
	is_copied(memcpy(to, from, bytes), to, "memcpy");
	is_copied(memmove(to, from, bytes), to, "memmove");
	is_copied(mempcpy(to, from, bytes), to + bytes, "mempcpy");
	is_copied(__memcpy_chk(to, from, bytes, ROOM), to, "__memcpy_chk");
	is_copied(__memmove_chk(to, from, bytes, ROOM), to, "__memmove_chk");
	is_copied(__mempcpy_chk(to, from, bytes, ROOM), to + bytes, "__mempcpy_chk");
}

APART void other(size_t bytes)
{
	is_copied(memcpy(to, from, bytes), to, "memcpy of another");
}

APART void filling(size_t bytes)
{
	check(memset(to, 3, bytes) == to && to[0] == 3 && to[bytes - 1] == 3 && to[bytes] == 0, "memset");
	check(__memset_chk(to, 0, bytes, ROOM) == to && to[0] == 0 && to[bytes - 1] == 0, "__memset_chk");
}

/* The result of moving within one piece of memory, in both directions and by any distance. */
APART void overlapping(size_t bytes)
{
	static unsigned char piece[ROOM], wanted[ROOM];
	for (size_t down = 0; down < 2; down++)
		for (size_t by = 1; by < bytes; by = by * 3 + 1) {
			for (size_t i = 0; i < ROOM; i++)
				piece[i] = (unsigned char)(i * 7 + i / 256);
			size_t first = down ? by : 0, then = down ? 0 : by;
			for (size_t i = 0; i < ROOM; i++)
				wanted[i] = i - then < bytes ? piece[i - then + first] : piece[i];
			memmove(piece + then, piece + first, bytes);
			check(memcmp(piece, wanted, ROOM) == 0, "overlapping memmove");
		}
}

/* Its last act is a jump: memcpy gets the return address of its caller. */
APART void *jumping(size_t bytes)
{
	return memcpy(to, from, bytes);
}

APART void calls_the_jumping(size_t bytes)
{
	is_copied(jumping(bytes), to, "by a jump");
}

/* One function that copies for two others. */
APART void shared(size_t bytes)
{
	is_copied(memcpy(to, from, bytes), to, "for two");
}

APART void first(size_t bytes)
{
	shared(bytes);
	shared(bytes);
	__asm__ volatile("");
}

APART void second(size_t bytes)
{
	shared(bytes);
	__asm__ volatile("");
}

static void late(const char *library, size_t bytes)
{
	void *opened = dlopen(library, RTLD_NOW);
	check(opened != NULL, library);
	void *(*copy)(void *, const void *, size_t) = (void *(*)(void *, const void *, size_t))dlsym(opened, "late_copy");
	for (int i = 0; i < 3; i++)
		is_copied(copy(to, from, bytes), to, "of a library that was opened later");
}

int main(int argc, char **argv)
{
	size_t bytes = BYTES + (size_t)(argc > 9);
	for (size_t i = 0; i < ROOM; i++)
		from[i] = (unsigned char)(i * 13 + i / 256);
	if (argc > 1 && strcmp(argv[1], "overflow") == 0) {
		volatile size_t room = 16;
		__memcpy_chk(to, from, bytes, room);
		return 0;
	}
	for (int i = 0; i < 5; i++)
		chosen(bytes);
	other(bytes);
	filling(bytes);
	overlapping(bytes);
	calls_the_jumping(bytes);
	first(bytes);
	second(bytes);
	if (argc > 1)
		late(argv[1], bytes);
	puts("good");
	return 0;
}
