/* SPDX-License-Identifier: GPL-2.0-or-later
 *
 * The table of instructions. QEMU translates the same code again when blocks overlap or its cache was emptied; the same
 * instruction with the same run keeps its entry, so the table grows with the code that ran and not with time.
 */
#include "tap.h"

#include <stdlib.h>
#include <string.h>

static uint32_t *table; /* id + 1; 0: empty; open addressing */
static uint32_t size, used;

static uint64_t hash(const struct insn_identity *i)
{
    uint64_t words[sizeof *i / 8], h = 0;
    memcpy(words, i, sizeof words);
    for (size_t n = 0; n < sizeof words / 8; n++)
        h = (h ^ words[n]) * 0x9e3779b97f4a7c15ULL, h ^= h >> 29;
    return h;
}

static int same(uint32_t id, const struct insn_identity *i)
{
    return memcmp(&tap_identities[id], i, sizeof *i) == 0;
}

static void place(uint32_t id)
{
    uint64_t at = hash(&tap_identities[id]) & (size - 1);
    while (table[at])
        at = (at + 1) & (size - 1);
    table[at] = id + 1;
}

static int grow(void)
{
    uint32_t larger = size ? size * 2 : 1u << 16;
    uint32_t *fresh = calloc(larger, sizeof *fresh);
    if (!fresh)
        return 0;
    free(table);
    table = fresh;
    size = larger;
    for (uint32_t id = 0; id < used; id++)
        place(id);
    return 1;
}

struct nm_insn *insns_entry(const struct insn_identity *identity, int *is_new)
{
    *is_new = 0;
    if (used * 2 >= size && !grow()) {
        tap_fail("out of memory for the table of instructions");
        return NULL;
    }
    uint64_t at = hash(identity) & (size - 1);
    for (; table[at]; at = (at + 1) & (size - 1))
        if (same(table[at] - 1, identity))
            return &tap.insns[table[at] - 1];
    if (used >= tap.control->insn_capacity) {
        tap_fail("the table of %u instructions is full: give the tap a larger one", tap.control->insn_capacity);
        return NULL;
    }
    const uint32_t id = used++;
    table[at] = id + 1;
    tap_identities[id] = *identity;
    tap.insns[id].vaddr = identity->vaddr;
    tap.insns[id].paddr = identity->paddr;
    tap.insns[id].run = identity->run;
    __atomic_store_n(&tap.control->insns, used, __ATOMIC_RELEASE);
    *is_new = 1;
    return &tap.insns[id];
}
