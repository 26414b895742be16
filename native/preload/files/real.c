#include "real.h"
#include <dlfcn.h>

struct real real;

void find_real(void)
{
#define FIND(function) real.function = (__typeof__(real.function))dlsym(RTLD_NEXT, #function)
#define FIND_AS(function, name) real.function = (__typeof__(real.function))dlsym(RTLD_NEXT, name)
	FIND(read);
	FIND_AS(read_chk, "__read_chk");
	FIND(pread);
	FIND_AS(pread_chk, "__pread_chk");
	FIND(readv);
	FIND(preadv);
	FIND(preadv2);
	FIND(write);
	FIND(pwrite);
	FIND(writev);
	FIND(pwritev);
	FIND(pwritev2);
	FIND(copy_file_range);
	FIND(sendfile);
	FIND(splice);
	FIND(lseek);
	FIND(close);
	FIND(close_range);
	FIND(closefrom);
	FIND(dup2);
	FIND(dup3);
	FIND(fread);
	FIND(fread_unlocked);
	FIND_AS(fread_chk, "__fread_chk");
	FIND_AS(fread_unlocked_chk, "__fread_unlocked_chk");
	FIND(fwrite);
	FIND(fwrite_unlocked);
	FIND(fgets);
	FIND(fgets_unlocked);
	FIND_AS(getdelim, "__getdelim");
	FIND(fputs);
	FIND(fputs_unlocked);
	FIND(fclose);
	FIND(_exit);
#undef FIND
#undef FIND_AS
	atomic_store_explicit(&real.found, 1, memory_order_release);
}
