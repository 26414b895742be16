/* SPDX-License-Identifier: GPL-2.0-or-later
 *
 * The slow path of an access: split it at the filter's lines, drop the parts that hit, send the others.
 */
#include "first_level.h"
#include "record.h"

enum outcome { HIT, SENT, DEVICE };

static inline uint64_t bytes_mask(uint64_t vaddr, unsigned bytes)
{
    return (bytes >= 64 ? ~0ULL : (1ULL << bytes) - 1) << (vaddr & (tap.line_bytes - 1));
}

/* A set's line changes, or a store to it was sent. */
static inline void remember(struct vcpu *v, struct filter_entry *e, uint64_t from, uint64_t line, uint64_t written)
{
    if (e->load_from != from) {
        filter_displace(e);
        e->load_from = from;
        e->line = line;
    }
    if (written) {
        e->store_from = tap.by_task ? NOWHERE : from;
        e->written |= written;
    }
    if (unlikely(v->aside.valid))
        filter_displace(&v->aside.data[e - v->data]);
}

/* The set's line is sent again in any case. */
static inline void forget(struct vcpu *v, struct filter_entry *e)
{
    filter_displace(e);
    if (v->aside.valid)
        filter_displace(&v->aside.data[e - v->data]);
}

/* With by_task: whether all these bytes were stored to since the line entered. */
static inline int is_known(const struct filter_entry *e, uint64_t from, uint64_t written)
{
    return tap.by_task && e->load_from == from && !(written & ~e->written);
}

/* The bytes of a reference inside one line. */
static inline __attribute__((always_inline)) enum outcome
piece(struct vcpu *v, struct nm_insn *insn, qemu_plugin_meminfo_t info, uint64_t vaddr, unsigned bytes,
      enum nm_kind kind, unsigned flags)
{
    const uint64_t from = vaddr & ~(uint64_t)(tap.line_bytes - 1);
    const int store = kind != NM_LOAD;
    const uint64_t written = store ? bytes_mask(vaddr, bytes) : 0;
    struct filter_entry *e = filter_set(v, vaddr);
    if (!store && e->load_from == from)
        return HIT;
    if (store && (e->store_from == from || is_known(e, from, written)) && kind != NM_NT_STORE &&
        !(kind == NM_ATOMIC && v->nt_pending)) {
        e->written |= written;
        return HIT;
    }
    uint64_t page = softtlb_page(v, info, vaddr);
    if (unlikely(page == NO_PAGE)) {
        __atomic_fetch_add(&tap.control->io_accesses, 1, __ATOMIC_RELAXED);
        return DEVICE;
    }
    const uint64_t offset = page << 12 | (vaddr & 4095), line = offset >> tap.line_log2;
    int always = line == v->watched_line;
    if (tap.sharing && sharing_touch(v, line, store))
        always = 1;
    struct first_level_use use = {.sent = 1};
    if (tap.first_data && kind != NM_NT_STORE) {
        const int drains = kind == NM_ATOMIC && v->nt_pending;
        use = first_level_use(&v->first_data, vaddr, page, store);
        if (!use.sent && !always && !drains) {
            remember(v, e, from, line, written);
            return HIT;
        }
    }
    record_send(v, insn, vaddr, bytes, kind, flags, page, use.word);
    if (kind == NM_NT_STORE) {
        if (tap.first_data)
            first_level_take(&v->first_data, vaddr, page);
        if (tap.first_fetch)
            code_line_take(&v->code, line);
        v->nt_pending = 1;
        const uint64_t before = filter_take(v, line); /* the caches give the line up */
        if (tap.sharing && !always && !tap.by_task)
            sharing_keep(line, before | written);
    } else if (unlikely(always || tap.every || (store && tap.ordered))) {
        forget(v, e);
    } else {
        remember(v, e, from, line, written);
    }
    if (kind == NM_ATOMIC)
        v->nt_pending = 0;
    if (unlikely(line == v->watched_line) && store)
        tasks_stored(v, offset);
    return SENT;
}

static inline void count_hit(struct vcpu *v, struct nm_insn *insn, int store)
{
    const int kernel = insn->flags & NM_I_KERNEL ? KERNEL : USER;
    if (store) {
        insn->store_hits++;
        v->stores[kernel]++;
    } else {
        insn->load_hits++;
        v->loads[kernel]++;
    }
}

/* The pieces from `vaddr` on; `before` is the outcome of the piece before it, if `continued`. */
static __attribute__((noinline)) enum outcome
pieces(struct vcpu *v, struct nm_insn *insn, qemu_plugin_meminfo_t info, uint64_t vaddr, unsigned bytes,
       enum nm_kind kind, int continued, enum outcome before)
{
    const unsigned base = flags_of(insn, kind, insn->flags & NM_I_KERNEL);
    while (bytes) {
        unsigned room = tap.line_bytes - (unsigned)(vaddr & (tap.line_bytes - 1));
        unsigned now = bytes < room ? bytes : room;
        unsigned flags = base;
        if (continued)
            flags |= before == SENT ? NM_F_CONT : NM_F_CONT | NM_F_FIRST_HIT;
        enum outcome outcome = piece(v, insn, info, vaddr, now, kind, flags);
        if (outcome == HIT) {
            if (continued)
                insn->cont_hits++;
            else
                count_hit(v, insn, kind != NM_LOAD);
        }
        before = outcome;
        continued = 1;
        vaddr += now;
        bytes -= now;
    }
    return before;
}

void reference(struct vcpu *v, struct nm_insn *insn, qemu_plugin_meminfo_t info, uint64_t vaddr, unsigned size,
               enum nm_kind kind)
{
    if (unlikely((vaddr & (tap.line_bytes - 1)) + size > tap.line_bytes)) {
        pieces(v, insn, info, vaddr, size, kind, 0, HIT);
        return;
    }
    if (piece(v, insn, info, vaddr, size, kind, flags_of(insn, kind, insn->flags & NM_I_KERNEL)) == HIT)
        count_hit(v, insn, kind != NM_LOAD);
}

/* Adds bytes of a line; its first bytes were just sent, or hit. */
static void extend(struct vcpu *v, uint64_t vaddr, unsigned bytes, int store)
{
    if (v->wide.record)
        v->wide.record->a += (uint64_t)bytes << 52;
    if (!store)
        return;
    struct filter_entry *e = filter_set(v, vaddr);
    if (e->store_from == (vaddr & ~(uint64_t)(tap.line_bytes - 1)))
        e->written |= bytes_mask(vaddr, bytes);
}

void reference_part(struct vcpu *v, struct nm_insn *insn, qemu_plugin_meminfo_t info, uint64_t vaddr, unsigned size,
                    enum nm_kind kind, int store)
{
    const int continued = v->wide.insn == insn && v->wide.store == store && v->wide.end == vaddr &&
                          v->wide.execution == insn->executions;
    v->wide.insn = insn;
    v->wide.execution = insn->executions;
    v->wide.store = store;
    v->wide.end = vaddr + size;
    enum outcome before = HIT;
    if (continued) {
        unsigned into = (unsigned)(vaddr & (tap.line_bytes - 1));
        before = v->wide.record ? SENT : HIT;
        if (into) {
            unsigned now = size < tap.line_bytes - into ? size : tap.line_bytes - into;
            extend(v, vaddr, now, store);
            vaddr += now;
            size -= now;
        }
    }
    if (!size)
        return;
    if (store && tap.by_task) /* what a part hides must be known of all that come after it: none is dropped */
        filter_set(v, vaddr)->written = filter_set(v, vaddr + size - 1)->written = 0;
    if (pieces(v, insn, info, vaddr, size, kind, continued, before) != SENT)
        v->wide.record = NULL;
}
