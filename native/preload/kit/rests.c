#include "rests.h"
#include "kit.h"
#include <string.h>
#include <unistd.h>

static struct nearmiss_rest *at(int rest)
{
	struct nearmiss_rest *rests = own_rests();
	return rests && rest >= 0 && rest < NEARMISS_RESTS ? &rests[rest] : NULL;
}

static void write_name(struct nearmiss_rest *rest, const char *name, size_t length)
{
	uint64_t words[sizeof rest->name / 8] = { 0 };
	for (size_t i = 0; i < length; i++)
		words[i / 8] |= (uint64_t)(unsigned char)name[i] << i % 8 * 8;
	for (size_t i = 0; i < sizeof words / sizeof *words; i++)
		__atomic_store_n(&rest->name[i], words[i], __ATOMIC_RELAXED);
}

static int try_take(struct nearmiss_rest *rest)
{
	uint32_t free = NEARMISS_REST_FREE;
	return __atomic_compare_exchange_n(&rest->state, &free, NEARMISS_REST_TAKEN, 0, __ATOMIC_ACQUIRE, __ATOMIC_RELAXED);
}

int begin_rest(dev_t device, ino_t inode, const char *name)
{
	struct nearmiss_rest *rests = own_rests();
	size_t length = strlen(name);
	if (!rests || length >= sizeof rests->name)
		return NO_REST;
	for (int i = 0; i < NEARMISS_RESTS; i++) {
		if (!try_take(&rests[i]))
			continue;
		__atomic_store_n(&rests[i].pid, getpid(), __ATOMIC_RELAXED);
		__atomic_store_n(&rests[i].device, device, __ATOMIC_RELAXED);
		__atomic_store_n(&rests[i].inode, inode, __ATOMIC_RELAXED);
		write_name(&rests[i], name, length);
		set_rest(i, 0, 0, 0);
		__atomic_store_n(&rests[i].state, NEARMISS_REST_WHOLE, __ATOMIC_RELEASE);
		return i;
	}
	return NO_REST;
}

void set_rest(int rest, uint64_t from, uint64_t to, int mixed)
{
	struct nearmiss_rest *of = at(rest);
	if (!of)
		return;
	__atomic_store_n(&of->from, from, __ATOMIC_RELAXED);
	__atomic_store_n(&of->to, to, __ATOMIC_RELAXED);
	__atomic_store_n(&of->mixed, (uint64_t)mixed, __ATOMIC_RELAXED);
}

void end_rest(int rest)
{
	struct nearmiss_rest *of = at(rest);
	if (of)
		__atomic_store_n(&of->state, NEARMISS_REST_FREE, __ATOMIC_RELEASE);
}
