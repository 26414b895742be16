#include "real.h"
#include <dlfcn.h>

struct real real;

void find_real(void)
{
#define FIND(function, name) real.function = (__typeof__(real.function))dlsym(RTLD_NEXT, name)
	FIND(poll, "poll");
	FIND(ppoll, "ppoll");
	FIND(poll_chk, "__poll_chk");
	FIND(ppoll_chk, "__ppoll_chk");
	FIND(select, "select");
	FIND(pselect, "pselect");
	FIND(epoll_wait, "epoll_wait");
	FIND(epoll_pwait, "epoll_pwait");
	FIND(epoll_pwait2, "epoll_pwait2");
	FIND(epoll_ctl, "epoll_ctl");
	FIND(syscall, "syscall");
#undef FIND
	atomic_store_explicit(&real.found, 1, memory_order_release);
}
