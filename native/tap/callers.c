/* SPDX-License-Identifier: GPL-2.0-or-later
 *
 * The call site of a heap object that is allocated in a pause, when no calls are seen. Compiled code has its stack at
 * the same place each time that it executes a call, so a call's return address lies at a fixed distance from that of
 * the function around it. Both are learned where calls are followed. In a pause each return address on the stack then
 * shows where the next one lies.
 *
 * A word that returns behind no known call ends the way, as does a call that was seen at two distances. The first call
 * seen in a part has callers that were not seen: there the way ends as well, as it did for the objects of that part.
 *
 * A call that was never seen may be one that a program executes once, behind its start. The shim's own return address is
 * certain, and the bytes before it are the call. Its caller's return address is looked for in the few words behind: an
 * allocator's own functions have small frames, and in a larger one any word may be left of an older call.
 */
#include "engine.h"
#include "nearmiss_trigger.h"

#include <string.h>

enum { CALLS_LOG2 = 16, PROBES = 16, LEARNED_LOG2 = 12, FRAMES_MAX = 64, SMALL_FRAME_WORDS = 6 };
/* Distances: not seen yet; larger than a function's stack, or several. */
enum { UNKNOWN = 0, DISTANCE_MAX = 1 << 20, DIFFERS };

struct call {
    uint64_t behind; /* where it returns to; 0: empty */
    uint64_t mm;
    uint32_t insn;
    uint32_t distance; /* from its return address to that of the function around it */
};
static struct call calls[1 << CALLS_LOG2];

/* Contexts learned lately. */
static struct {
    uint64_t mm;
    uint32_t context;
} learned[1 << LEARNED_LOG2];

static uint64_t hash(uint64_t mm, uint64_t key, unsigned bits)
{
    return (key ^ mm << 13) * 0x9e3779b97f4a7c15ULL >> (64 - bits);
}

/* The call's entry, or the empty one where it belongs; NULL: there is no room. */
static struct call *find(uint64_t mm, uint64_t behind)
{
    const uint64_t at = hash(mm, behind, CALLS_LOG2);
    for (unsigned probe = 0; probe < PROBES; probe++) {
        struct call *c = &calls[(at + probe) & ((1 << CALLS_LOG2) - 1)];
        if (!c->behind || (c->behind == behind && c->mm == mm))
            return c;
    }
    return NULL;
}

static void learn(uint64_t mm, uint32_t insn, uint64_t distance)
{
    const uint64_t behind = tap.insns[insn].vaddr + tap_identities[insn].size;
    struct call *c = find(mm, behind);
    if (!c)
        return;
    if (!c->behind)
        *c = (struct call){behind, mm, insn, UNKNOWN};
    if (distance >= DISTANCE_MAX)
        c->distance = DIFFERS;
    else if (distance && c->distance != distance)
        c->distance = c->distance == UNKNOWN ? (uint32_t)distance : DIFFERS;
}

static int is_learned(uint64_t mm, uint32_t context)
{
    const uint64_t at = hash(mm, context, LEARNED_LOG2);
    if (learned[at].context == context && learned[at].mm == mm)
        return 1;
    learned[at].context = context;
    learned[at].mm = mm;
    return 0;
}

void callers_learn(struct vcpu *v, uint64_t slot)
{
    const struct shadow_stack *s = &v->task->stacks[USER];
    uint32_t depth = s->depth;
    while (depth && s->frames[depth - 1].sp < slot)
        depth--;
    if (!depth || s->frames[depth - 1].sp != slot || is_learned(v->task->mm, s->frames[depth - 1].context))
        return;
    for (; depth; depth--) {
        const struct frame *f = &s->frames[depth - 1];
        learn(v->task->mm, tap.ctxs[f->context].call, depth > 1 ? f[-1].sp - f->sp : UNKNOWN);
    }
}

/* A word of user mode in a page; 0: there is none. */
static uint64_t word_in(uint64_t page, uint64_t vaddr)
{
    uint64_t word = 0;
    const int is_none = page == NO_PAGE || vaddr & 7 || vaddr >> 47;
    const void *at = is_none ? NULL : ram_at(page << 12 | (vaddr & 4095), sizeof word);
    if (at)
        memcpy(&word, at, sizeof word);
    return word;
}

/* The page of the shim's frame. A walk through the guest's page tables costs more than all else here: the page of the
 * last time is still the right one if it holds the word that the shim has just stored. */
static uint64_t page_of_shim(struct vcpu *v, const struct nearmiss_mailbox *mail)
{
    struct task *t = v->task;
    if ((t->stack_at ^ mail->proof) >> 12 || word_in(t->stack_page, mail->proof) != mail->sequence) {
        t->stack_at = mail->proof;
        t->stack_page = engine_page(v->index, mail->proof);
    }
    return t->stack_page;
}

/* Bytes of the call that ends before `end`; 0: none does, or it has a rare form. */
static unsigned call_before(const uint8_t *end)
{
    const int by_register = end[-2] == 0xff && (end[-1] & 0xf8) == 0xd0;
    const int by_near_word = end[-3] == 0xff && (end[-2] & 0xf8) == 0x50 && (end[-2] & 7) != 4;
    const int by_word = end[-6] == 0xff && (end[-5] == 0x15 || ((end[-5] & 0xf8) == 0x90 && (end[-5] & 7) != 4));
    return end[-5] == 0xe8 ? 5 : by_word ? 6 : by_near_word ? 3 : by_register ? 2 : 0;
}

/* The number of the call that returns to `behind`, by the bytes before it; -1: there is none. */
static int64_t unseen(struct vcpu *v, uint64_t behind)
{
    enum { LONGEST = 6 };
    if (behind >> 47 || (behind & 4095) < LONGEST)
        return -1;
    const uint64_t page = engine_page(v->index, behind);
    const uint8_t *at = page == NO_PAGE ? NULL : ram_at(page << 12 | ((behind & 4095) - LONGEST), LONGEST);
    const unsigned size = at ? call_before(at + LONGEST) : 0;
    if (!size)
        return -1;
    struct insn_identity identity = {.vaddr = behind - size, .paddr = page << 12 | ((behind & 4095) - size),
                                     .size = (uint8_t)size, .run = 1, .fetched = (uint16_t)size};
    memcpy(identity.code, at + LONGEST - size, size);
    int is_new;
    struct nm_insn *insn = insns_entry(&identity, &is_new);
    if (insn && is_new) {
        insn->flags = NM_I_CALL | size << NM_I_FETCHED_SHIFT;
        insn->task = v->task->address;
    }
    return insn ? (int64_t)insn_id(insn) : -1;
}

/* Notes a call that was never seen, with its return address at `slot`; NULL: the word there is none. */
static const struct call *note_unseen(struct vcpu *v, struct call *c, uint64_t behind, uint64_t slot, uint64_t page)
{
    const int64_t insn = unseen(v, behind);
    if (insn < 0)
        return NULL;
    uint32_t distance = UNKNOWN;
    for (uint32_t word = 1; word <= SMALL_FRAME_WORDS && !distance; word++) {
        const uint64_t next = slot + 8 * word;
        const uint64_t there = (next ^ slot) >> 12 ? 0 : word_in(page, next);
        const struct call *known = there ? find(v->task->mm, there) : NULL;
        if ((known && known->behind) || (there && unseen(v, there) >= 0))
            distance = 8 * word;
    }
    *c = (struct call){behind, v->task->mm, (uint32_t)insn, distance};
    return c;
}

uint32_t callers_on_stack(struct vcpu *v, const struct nearmiss_mailbox *mail)
{
    struct {
        uint64_t slot;
        uint32_t insn;
    } frames[FRAMES_MAX];
    unsigned count = 0;
    uint64_t slot = mail->stack, paged = mail->proof, page = page_of_shim(v, mail);
    for (uint32_t distance = 1; distance != UNKNOWN && count < FRAMES_MAX; count++) {
        if ((slot ^ paged) >> 12)
            page = engine_page(v->index, slot);
        paged = slot;
        const uint64_t behind = word_in(page, slot);
        struct call *place = behind ? find(v->task->mm, behind) : NULL;
        const struct call *c = place && !place->behind ? note_unseen(v, place, behind, slot, page) : place;
        if (!c)
            break;
        frames[count].slot = slot;
        frames[count].insn = c->insn;
        distance = c->distance == DIFFERS ? UNKNOWN : c->distance;
        slot += distance;
    }
    uint32_t context = 0;
    while (count--)
        context = contexts_child(context, frames[count].insn, frames[count].slot);
    return context;
}
