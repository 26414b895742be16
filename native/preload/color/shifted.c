/* A three-level table over 48-bit addresses by 4 KB page. Without locks, so it is at ease in
 * forked children and signal handlers; nodes are never given back. */
#define _GNU_SOURCE
#include "shifted.h"
#include <stdatomic.h>
#include <stdint.h>
#include <sys/mman.h>

#define LEVEL_BITS 12
#define LEVEL_SIZE (1u << LEVEL_BITS)

/* Low 12 bits: where in its page the block begins. Above: its shift, never 0. */
typedef _Atomic uint32_t entry;
struct leaf {
	entry entries[LEVEL_SIZE];
};
struct middle {
	struct leaf *_Atomic leaves[LEVEL_SIZE];
};
static struct middle *_Atomic root[LEVEL_SIZE];

static unsigned digit(uintptr_t address, int level)
{
	return (unsigned)(address >> (12 + LEVEL_BITS * level)) & (LEVEL_SIZE - 1);
}

/* The node in a slot, made if need be; whoever comes second gives its own back. */
static void *node(void *_Atomic *slot, size_t bytes)
{
	void *present = atomic_load_explicit(slot, memory_order_acquire);
	if (present)
		return present;
	void *made = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (made == MAP_FAILED)
		return NULL;
	if (atomic_compare_exchange_strong(slot, &present, made))
		return made;
	munmap(made, bytes);
	return present;
}

static entry *find(const void *user)
{
	uintptr_t address = (uintptr_t)user;
	if (address >> 48)
		return NULL;
	struct middle *middle = atomic_load_explicit(&root[digit(address, 2)], memory_order_acquire);
	if (!middle)
		return NULL;
	struct leaf *leaf = atomic_load_explicit(&middle->leaves[digit(address, 1)], memory_order_acquire);
	return leaf ? &leaf->entries[digit(address, 0)] : NULL;
}

static size_t shift_if_of(uint32_t entry, const void *user)
{
	return (entry & 0xfff) == ((uintptr_t)user & 0xfff) ? entry >> 12 : 0;
}

int shifted_put(void *user, size_t shift_bytes)
{
	uintptr_t address = (uintptr_t)user;
	if (address >> 48 || shift_bytes == 0 || shift_bytes > SHIFTED_LARGEST_SHIFT)
		return 0;
	struct middle *middle = node((void *_Atomic *)&root[digit(address, 2)], sizeof(struct middle));
	if (!middle)
		return 0;
	struct leaf *leaf = node((void *_Atomic *)&middle->leaves[digit(address, 1)], sizeof(struct leaf));
	if (!leaf)
		return 0;
	uint32_t value = (uint32_t)shift_bytes << 12 | (address & 0xfff);
	atomic_store_explicit(&leaf->entries[digit(address, 0)], value, memory_order_release);
	return 1;
}

size_t shifted_get(const void *user)
{
	entry *at = find(user);
	return at ? shift_if_of(atomic_load_explicit(at, memory_order_acquire), user) : 0;
}

size_t shifted_take(void *user)
{
	entry *at = find(user);
	if (!at)
		return 0;
	uint32_t value = atomic_load_explicit(at, memory_order_acquire);
	size_t shift_bytes = shift_if_of(value, user);
	if (shift_bytes)
		atomic_store_explicit(at, 0, memory_order_release);
	return shift_bytes;
}
