/* The functions behind those that this library wraps. */
#ifndef REAL_H
#define REAL_H

#define _GNU_SOURCE
#include <stdatomic.h>
#include <stdio.h>
#include <sys/types.h>
#include <sys/uio.h>

struct real {
	atomic_int found;
	ssize_t (*read)(int, void *, size_t);
	ssize_t (*read_chk)(int, void *, size_t, size_t);
	ssize_t (*pread)(int, void *, size_t, off_t);
	ssize_t (*pread_chk)(int, void *, size_t, off_t, size_t);
	ssize_t (*readv)(int, const struct iovec *, int);
	ssize_t (*preadv)(int, const struct iovec *, int, off_t);
	ssize_t (*preadv2)(int, const struct iovec *, int, off_t, int);
	ssize_t (*write)(int, const void *, size_t);
	ssize_t (*pwrite)(int, const void *, size_t, off_t);
	ssize_t (*writev)(int, const struct iovec *, int);
	ssize_t (*pwritev)(int, const struct iovec *, int, off_t);
	ssize_t (*pwritev2)(int, const struct iovec *, int, off_t, int);
	ssize_t (*copy_file_range)(int, off_t *, int, off_t *, size_t, unsigned);
	ssize_t (*sendfile)(int, int, off_t *, size_t);
	ssize_t (*splice)(int, off_t *, int, off_t *, size_t, unsigned);
	off_t (*lseek)(int, off_t, int);
	int (*close)(int);
	int (*close_range)(unsigned, unsigned, int);
	void (*closefrom)(int);
	int (*dup2)(int, int);
	int (*dup3)(int, int, int);
	size_t (*fread)(void *, size_t, size_t, FILE *);
	size_t (*fread_unlocked)(void *, size_t, size_t, FILE *);
	size_t (*fread_chk)(void *, size_t, size_t, size_t, FILE *);
	size_t (*fread_unlocked_chk)(void *, size_t, size_t, size_t, FILE *);
	size_t (*fwrite)(const void *, size_t, size_t, FILE *);
	size_t (*fwrite_unlocked)(const void *, size_t, size_t, FILE *);
	char *(*fgets)(char *, int, FILE *);
	char *(*fgets_unlocked)(char *, int, FILE *);
	ssize_t (*getdelim)(char **, size_t *, int, FILE *);
	int (*fputs)(const char *, FILE *);
	int (*fputs_unlocked)(const char *, FILE *);
	int (*fclose)(FILE *);
	void (*_exit)(int);
};

extern struct real real __attribute__((visibility("hidden")));

/* Threads that search at the same time find the same. */
void find_real(void);

/* Constructors of other libraries call us before our own has run. */
static inline void need_real(void)
{
	if (__builtin_expect(!atomic_load_explicit(&real.found, memory_order_acquire), 0))
		find_real();
}

#endif
