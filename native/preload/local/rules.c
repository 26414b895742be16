/* Rules by call: found when the program has been loaded, applied to each block or mapping that the call was given. */
#define _GNU_SOURCE
#include "rules.h"
#include <errno.h>
#include <limits.h>
#include <link.h>
#include <linux/mempolicy.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#define MOST_RULES 64
#define NAME_BYTES 128
#define PAGE_BYTES 4096ul
/* A call is two to seven bytes long, and returns behind itself. */
#define LONGEST_CALL 8

struct rule {
	char module[NAME_BYTES];
	uintptr_t call; /* as the file was linked, then as it was loaded */
	int loaded;
	uint64_t nth, from, to;
	int node;
	/* Requests for memory by a call, counted in its first rule. */
	atomic_ulong asked;
	struct rule *first;
};

static struct rule rules[MOST_RULES];
static unsigned count_of_rules;
static uint64_t all_nodes;

static const char *base_name(const char *path)
{
	const char *slash = strrchr(path, '/');
	return slash ? slash + 1 : path;
}

static int find_module(struct dl_phdr_info *object, size_t size, void *given)
{
	char own[PATH_MAX];
	const char *name = object->dlpi_name;
	(void)size;
	(void)given;
	if (!name || !*name) {
		ssize_t length = readlink("/proc/self/exe", own, sizeof own - 1);
		own[length < 0 ? 0 : length] = 0;
		name = own;
	}
	for (unsigned i = 0; i < count_of_rules; i++) {
		if (!rules[i].loaded && strcmp(base_name(name), rules[i].module) == 0) {
			rules[i].call += object->dlpi_addr;
			rules[i].loaded = 1;
		}
	}
	return 0;
}

/* One rule at `at`; returns what follows it, or NULL. */
static const char *read_rule(const char *at, struct rule *rule)
{
	const char *plus = strchr(at, '+');
	char *end;
	if (!plus || (size_t)(plus - at) >= NAME_BYTES)
		return NULL;
	memcpy(rule->module, at, (size_t)(plus - at));
	rule->call = strtoull(plus + 1, &end, 16);
	rule->nth = ANY_NUMBER;
	if (*end == '#')
		rule->nth = strtoull(end + 1, &end, 10);
	if (*end != ':')
		return NULL;
	rule->from = strtoull(end + 1, &end, 16);
	if (*end != '-')
		return NULL;
	rule->to = strtoull(end + 1, &end, 16);
	if (*end != '=')
		return NULL;
	if (end[1] == 'i') {
		rule->node = INTERLEAVE;
		end += 2;
	} else {
		rule->node = (int)strtol(end + 1, &end, 10);
	}
	return *end == ';' ? end + 1 : end;
}

unsigned read_rules(const char *list, uint64_t nodes)
{
	all_nodes = nodes;
	while (list && *list && count_of_rules < MOST_RULES) {
		list = read_rule(list, &rules[count_of_rules]);
		count_of_rules += list != NULL;
	}
	dl_iterate_phdr(find_module, NULL);
	for (unsigned i = 0; i < count_of_rules; i++) {
		rules[i].first = &rules[i];
		for (unsigned j = 0; j < i && rules[i].first == &rules[i]; j++)
			if (rules[j].call == rules[i].call && strcmp(rules[j].module, rules[i].module) == 0)
				rules[i].first = rules[j].first;
	}
	return count_of_rules;
}

static void give_home(const struct rule *rule, uintptr_t start, size_t bytes)
{
	uintptr_t from = start + (rule->from < bytes ? rule->from : bytes);
	uintptr_t to = start + (rule->to < bytes ? rule->to : bytes);
	from &= ~(PAGE_BYTES - 1);
	/* The last page of the memory goes with its last part. */
	to = (rule->to < bytes ? to : to + PAGE_BYTES - 1) & ~(PAGE_BYTES - 1);
	if (from >= to)
		return;
	unsigned long mask = rule->node == INTERLEAVE ? all_nodes : 1ul << rule->node;
	int mode = rule->node == INTERLEAVE ? MPOL_INTERLEAVE : MPOL_PREFERRED;
	long failed = syscall(SYS_mbind, from, to - from, mode, &mask, sizeof mask * CHAR_BIT + 1, MPOL_MF_MOVE);
	count_home(to - from, failed != 0);
}

void give_homes(void *start, size_t bytes, const void *return_address)
{
	uint64_t number = ANY_NUMBER;
	int before = errno;
	for (unsigned i = 0; i < count_of_rules; i++) {
		struct rule *rule = &rules[i];
		uintptr_t behind = (uintptr_t)return_address - rule->call;
		if (!rule->loaded || behind < 1 || behind > LONGEST_CALL)
			continue;
		if (number == ANY_NUMBER)
			number = atomic_fetch_add_explicit(&rule->first->asked, 1, memory_order_relaxed);
		if (rule->nth == ANY_NUMBER || rule->nth == number)
			give_home(rule, (uintptr_t)start, bytes);
	}
	errno = before;
}
