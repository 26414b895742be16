/* Calls that give a descriptor another position or another file. */
#define _GNU_SOURCE
#include "../kit/kit.h"
#include "real.h"
#include "streams.h"
#include <unistd.h>

EXPORT off_t lseek(int fd, off_t offset, int whence)
{
	need_real();
	off_t position = real.lseek(fd, offset, whence);
	moved(fd, position);
	return position;
}
EXPORT extern __typeof__(lseek) lseek64 __attribute__((alias("lseek"), copy(lseek)));

EXPORT int close(int fd)
{
	need_real();
	leave(fd);
	return real.close(fd);
}

EXPORT int dup2(int from, int to)
{
	need_real();
	if (from != to)
		leave(to);
	return real.dup2(from, to);
}

EXPORT int dup3(int from, int to, int flags)
{
	need_real();
	if (from != to)
		leave(to);
	return real.dup3(from, to, flags);
}

EXPORT int close_range(unsigned first, unsigned last, int flags)
{
	need_real();
	if (!(flags & ~(int)CLOSE_RANGE_UNSHARE))
		leave_range(first, last);
	return real.close_range(first, last, flags);
}

EXPORT void closefrom(int first)
{
	need_real();
	leave_range(first < 0 ? 0 : (unsigned)first, ~0u);
	real.closefrom(first);
}
