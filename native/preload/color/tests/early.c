/* Allocates and starts threads before any constructor of a library need have run. */
#include "check.h"
#include <pthread.h>
#include <string.h>

static void *nothing(void *argument)
{
	return argument;
}

static void *kept;

static void before_constructors(void)
{
	kept = malloc(1 << 20);
	memset(kept, 5, 1 << 20);
	void *small = calloc(3, 5);
	free(realloc(small, 100000));
	pthread_t thread;
	CHECK(pthread_create(&thread, NULL, nothing, NULL) == 0);
	pthread_join(thread, NULL);
}

__attribute__((section(".preinit_array"), used)) static void (*at_preinit)(void) = before_constructors;

/* Through a volatile pointer, or the compiler leaves the allocation out. */
static void use_block(void)
{
	char *volatile block = malloc(1 << 20);
	block[1 << 19] = 1;
	free(block);
}

__attribute__((destructor)) static void last(void)
{
	use_block();
}

int main(void)
{
	CHECK(((char *)kept)[1 << 19] == 5);
	free(kept);
	for (int i = 0; i < 4; i++)
		use_block();
	return 0;
}
