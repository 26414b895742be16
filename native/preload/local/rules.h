/* Rules that assign memory to nodes, by the call that allocates it. */
#ifndef RULES_H
#define RULES_H

#include <stddef.h>
#include <stdint.h>

/* A rule takes all that its call allocates. */
#define ANY_NUMBER UINT64_MAX
/* Instead of a node: page by page over all of them. */
#define INTERLEAVE (-1)

/* Sets the homes that a rule gives to parts of `bytes` at `start`, if `return_address` lies behind the rule's call. */
void give_homes(void *start, size_t bytes, const void *return_address);

/* Reads `NAME+HEX[#DEC]:HEX-HEX=NODE|i;…` and the mask of the nodes; returns how many rules there are. */
unsigned read_rules(const char *list, uint64_t nodes);

/* Homes that were given, their bytes, and those that the kernel refused. */
void count_home(size_t bytes, int failed);

#endif
