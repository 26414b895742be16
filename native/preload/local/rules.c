/* Rules by call: found when the program has been loaded, applied to each block or mapping that the call was given. */
#define _GNU_SOURCE
#include "rules.h"
#include "../kit/calls.h"
#include <errno.h>
#include <limits.h>
#include <linux/mempolicy.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#define MOST_RULES 64
#define PAGE_BYTES 4096ul

struct rule {
	struct call call;
	uint64_t nth, from, to;
	int node;
	/* Requests for memory by a call, counted in its first rule. */
	atomic_ulong requests;
	struct rule *first;
};

static struct rule rules[MOST_RULES];
static unsigned count_of_rules;
static uint64_t all_nodes;

/* One rule at `at`; returns what follows it, or NULL. */
static const char *read_rule(const char *at, struct rule *rule)
{
	char *end = (char *)read_call(at, &rule->call);
	if (!end)
		return NULL;
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
	for (unsigned i = 0; i < count_of_rules; i++) {
		load_call(&rules[i].call);
		rules[i].first = &rules[i];
		for (unsigned j = 0; j < i && rules[i].first == &rules[i]; j++)
			if (rules[j].call.address == rules[i].call.address &&
			    strcmp(rules[j].call.module, rules[i].call.module) == 0)
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
		if (!returns_from(&rule->call, return_address))
			continue;
		if (number == ANY_NUMBER)
			number = atomic_fetch_add_explicit(&rule->first->requests, 1, memory_order_relaxed);
		if (rule->nth == ANY_NUMBER || rule->nth == number)
			give_home(rule, (uintptr_t)start, bytes);
	}
	errno = before;
}
