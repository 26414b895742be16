#define _GNU_SOURCE
#include "last.h"
#include "real.h"
#include <errno.h>
#include <stdatomic.h>
#include <sys/mman.h>

#define MOST_DESCRIPTORS (1u << 20)
#define BUCKETS (1u << 16)
#define WAYS 4

struct registration {
	_Atomic uint64_t data;
	_Atomic uint32_t set; /* + 1; 0: never registered */
};

/* Threads write it without a lock: a torn entry names another descriptor or none, which costs one sleep, or one call
 * awake. A bucket has descriptors + 1. An entry stays when its descriptor is closed: the kernel then reports it. */
struct registry {
	struct registration by_descriptor[MOST_DESCRIPTORS];
	_Atomic uint32_t buckets[BUCKETS][WAYS];
};

static struct registry *_Atomic registry;

/* Only pages that are used take memory. */
static struct registry *need_registry(void)
{
	struct registry *present = atomic_load(&registry);
	if (present)
		return present;
	struct registry *fresh = mmap(NULL, sizeof *fresh, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (fresh == MAP_FAILED)
		return NULL;
	if (atomic_compare_exchange_strong(&registry, &present, fresh))
		return fresh;
	munmap(fresh, sizeof *fresh);
	return present;
}

static int is_registered(const struct registry *known, uint32_t descriptor, int set, uint64_t data)
{
	const struct registration *entry = &known->by_descriptor[descriptor];
	return entry->set == (uint32_t)set + 1 && entry->data == data;
}

static _Atomic uint32_t *bucket_of(struct registry *known, int set, uint64_t data)
{
	uint64_t mixed = (data ^ (uint64_t)set << 48) * 0x9e3779b97f4a7c15ull;
	return known->buckets[mixed >> 48];
}

/* The place of the same registration, a free or an outdated one, or one that depends on the descriptor. */
static _Atomic uint32_t *place_in(struct registry *known, _Atomic uint32_t *bucket, uint32_t descriptor, int set, uint64_t data)
{
	_Atomic uint32_t *place = &bucket[descriptor % WAYS];
	for (int way = WAYS - 1; way >= 0; way--) {
		uint32_t taken = bucket[way];
		if (!taken) {
			place = &bucket[way];
			continue;
		}
		const struct registration *entry = &known->by_descriptor[taken - 1];
		if (entry->set == (uint32_t)set + 1 && entry->data == data)
			return &bucket[way];
		if (bucket_of(known, (int)(entry->set - 1), entry->data) != bucket)
			place = &bucket[way];
	}
	return place;
}

void learn(int set, int operation, int descriptor, const struct epoll_event *event)
{
	if (operation == EPOLL_CTL_DEL || (uint32_t)descriptor >= MOST_DESCRIPTORS)
		return;
	int before = errno;
	struct registry *known = need_registry();
	errno = before;
	if (!known)
		return;
	uint64_t data = event->data.u64;
	struct registration *entry = &known->by_descriptor[descriptor];
	if (is_registered(known, (uint32_t)descriptor, set, data))
		return;
	_Atomic uint32_t *place = place_in(known, bucket_of(known, set, data), (uint32_t)descriptor, set, data);
	entry->data = data;
	entry->set = (uint32_t)set + 1;
	*place = (uint32_t)descriptor + 1;
}

/* -1 where it is not known. Many programs register the descriptor itself; threads may share it among several sets. */
static int descriptor_of(int set, uint64_t data)
{
	struct registry *known = atomic_load(&registry);
	if (!known)
		return -1;
	uint32_t itself = (uint32_t)data;
	if (itself < MOST_DESCRIPTORS && known->by_descriptor[itself].set && known->by_descriptor[itself].data == data)
		return (int)itself;
	_Atomic uint32_t *bucket = bucket_of(known, set, data);
	for (int way = 0; way < WAYS; way++) {
		uint32_t taken = bucket[way];
		if (taken && is_registered(known, taken - 1, set, data))
			return (int)taken - 1;
	}
	return -1;
}

void note_polled(struct last *last, const struct pollfd *polled, size_t count, int events)
{
	last->set = -1;
	last->count = 0;
	for (size_t i = 0; i < count && events > 0 && last->count < MOST_LAST; i++) {
		events -= polled[i].revents != 0;
		if (polled[i].revents & POLLIN)
			last->descriptors[last->count++] = polled[i].fd;
	}
}

void note_selected(struct last *last, const fd_set *readable, int count, int events)
{
	last->set = -1;
	last->count = 0;
	/* Sets may be longer than their type: FD_ISSET would refuse to look there. */
	const unsigned char *bytes = (const unsigned char *)readable;
	for (int i = 0; bytes && i < count && events > 0 && last->count < MOST_LAST; i++) {
		if (bytes[i / 8] >> i % 8 & 1) {
			events--;
			last->descriptors[last->count++] = i;
		}
	}
}

void note_epolled(struct last *last, int set, const struct epoll_event *returned, int events)
{
	last->set = set;
	last->count = 0;
	for (int i = 0; i < events && last->count < MOST_LAST; i++) {
		if (returned[i].events & EPOLLIN)
			last->data[last->count++] = returned[i].data.u64;
	}
}

enum left_over poll_left_over(const struct last *last)
{
	struct pollfd polled[MOST_LAST];
	for (unsigned i = 0; i < last->count; i++) {
		int descriptor = last->set < 0 ? last->descriptors[i] : descriptor_of(last->set, last->data[i]);
		if (descriptor < 0)
			return UNKNOWN;
		polled[i] = (struct pollfd){ descriptor, POLLIN, 0 };
	}
	int before = errno;
	int events = last->count ? real.poll(polled, last->count, 0) : 0;
	errno = before;
	for (unsigned i = 0; events > 0 && i < last->count; i++) {
		if (polled[i].revents & POLLIN)
			return LEFT;
	}
	return TAKEN;
}
