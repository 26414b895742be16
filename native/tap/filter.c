/* SPDX-License-Identifier: GPL-2.0-or-later
 *
 * The filter: an access to the line that its set touched last is counted, not sent.
 *
 * If a replay may make any store non-temporal (tap.ordered), a store takes its line from the caches and leaves its
 * bytes in a buffer: every store is sent, and its set forgets. The filter then drops only a load behind a load of the
 * line with no store to the set between them. A mask of bytes would not do: it does not distinguish a load before a
 * store from one behind it.
 *
 * If a replay may place tasks anew (tap.by_task), each chunk and each stay of a task on a vCPU begins with an empty
 * filter, and a store is dropped only if its bytes were stored to before, so that no byte is written unseen. In both
 * modes no store takes the callbacks' short way: store_from stays NOWHERE.
 *
 * If a replay may place the fields of objects anew (tap.every), each access makes its set forget, so that none is
 * dropped.
 */
#include "tap.h"

void filter_displace(struct filter_entry *e)
{
    if (tap.sharing && !tap.by_task && e->written && e->line != NO_LINE)
        sharing_keep(e->line, e->written);
    *e = (struct filter_entry){NOWHERE, NOWHERE, 0, NO_LINE};
}

void filter_clear(struct vcpu *v)
{
    for (uint32_t i = 0; i <= tap.index_mask; i++)
        filter_displace(&v->data[i]);
    if (v->aside.valid)
        for (uint32_t i = 0; i <= tap.index_mask; i++)
            filter_displace(&v->aside.data[i]);
}

void fetch_clear(struct vcpu *v)
{
    for (uint32_t i = 0; i <= tap.index_mask; i++)
        v->fetched[i] = NO_LINE;
}

/* The index bits lie inside the page offset, so the line's physical address gives its set. */
static uint64_t take(struct filter_entry *sets, uint64_t line)
{
    struct filter_entry *e = &sets[line << tap.line_log2 >> tap.index_low & tap.index_mask];
    if (e->line != line)
        return 0;
    const uint64_t written = e->written;
    *e = (struct filter_entry){NOWHERE, NOWHERE, 0, NO_LINE};
    return written;
}

uint64_t filter_take(struct vcpu *v, uint64_t line)
{
    uint64_t written = take(v->data, line);
    return v->aside.valid ? written | take(v->aside.data, line) : written;
}

/* While a task is skipped the filter must miss, so that its accesses reach the slow path and are left out there; what
 * it held is still the line of each set touched last, unless the kernel touches the set meanwhile. */
void filter_set_aside(struct vcpu *v)
{
    if (v->aside.valid)
        return;
    for (uint32_t i = 0; i <= tap.index_mask; i++) {
        v->aside.data[i] = v->data[i];
        v->data[i] = (struct filter_entry){NOWHERE, NOWHERE, 0, NO_LINE};
    }
    v->aside.valid = 1;
}

void filter_bring_back(struct vcpu *v)
{
    if (!v->aside.valid)
        return;
    v->aside.valid = 0;
    for (uint32_t i = 0; i <= tap.index_mask; i++) {
        if (v->data[i].load_from == NOWHERE)
            v->data[i] = v->aside.data[i];
        else
            filter_displace(&v->aside.data[i]);
    }
}
