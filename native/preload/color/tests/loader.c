/* Loads a library beside the program by RUNPATH alone, and one with RTLD_DEEPBIND, which
 * would free our blocks in the C library. */
#define _GNU_SOURCE
#include "check.h"
#include <dlfcn.h>

int main(void)
{
	void *library = dlopen("libfrees.so", RTLD_NOW | RTLD_LOCAL);
	CHECK(library);
	dlclose(library);
	library = dlopen("libfrees.so", RTLD_NOW | RTLD_DEEPBIND);
	CHECK(library);
	void (*frees)(void *) = (void (*)(void *))dlsym(library, "frees");
	void *(*makes)(size_t) = (void *(*)(size_t))dlsym(library, "makes");
	for (int i = 0; i < 100; i++) {
		frees(malloc(1 << 20));
		free(makes(1 << 20));
	}
	dlclose(library);
	return 0;
}
