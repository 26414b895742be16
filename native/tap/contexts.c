/* SPDX-License-Identifier: GPL-2.0-or-later
 *
 * Calling contexts: a shadow stack, kept by the stack pointer that calls and returns show, and a tree of the pairs
 * (context of the caller, call instruction). Recursion does not grow the tree: where the instruction called before on the
 * way to the caller, the context is that of then (Ammons, Ball, Larus: Exploiting hardware performance counters with
 * flow and context sensitive profiling, PLDI 1997). A sort that calls itself twice would have one for each part it sorts.
 */
#include "tap.h"

#include <stdlib.h>
#include <string.h>

enum { DEPTH_MAX = 4096, KERNEL_STACK_LOG2 = 14, RECENT_LOG2 = 12 };

/* A context by its pair: open addressing, the pair beside the number so that one line of memory answers. */
struct entry {
    uint32_t parent, call;
    uint32_t context; /* 0: empty */
};

static struct entry *table;
static uint32_t table_size, pairs;

/* Pairs used lately: the table is larger than a CPU's own caches. */
static struct entry recent[1 << RECENT_LOG2];

static uint64_t hash(uint32_t parent, uint32_t call)
{
    return ((uint64_t)parent << 32 | call) * 0x9e3779b97f4a7c15ULL;
}

/* Returns the pair's entry, or the empty entry where it belongs. */
static struct entry *find(uint32_t parent, uint32_t call)
{
    for (uint32_t at = (uint32_t)(hash(parent, call) >> 32);; at++) {
        struct entry *e = &table[at & (table_size - 1)];
        if (!e->context || (e->parent == parent && e->call == call))
            return e;
    }
}

static int grow(void)
{
    const uint32_t old_size = table_size, size = old_size ? old_size * 2 : 1u << 14;
    struct entry *old = table, *larger = calloc(size, sizeof *larger);
    if (!larger)
        return 0;
    table = larger;
    table_size = size;
    for (uint32_t at = 0; at < old_size; at++)
        if (old[at].context)
            *find(old[at].parent, old[at].call) = old[at];
    free(old);
    return 1;
}

/* The context that `call` led to on the way to `parent`, or 0. */
static uint32_t recursion(uint32_t parent, uint32_t call)
{
    while (parent && tap.ctxs[parent].call != call)
        parent = tap.ctxs[parent].parent;
    return parent;
}

/* The context of `call` under `parent`; `parent` itself when the tree is full. */
static uint32_t intern(uint32_t parent, uint32_t call, uint64_t slot)
{
    if ((!table || pairs * 2 > table_size) && !grow())
        return parent;
    struct entry *e = find(parent, call);
    if (e->context)
        return e->context;
    uint32_t context = recursion(parent, call);
    if (!context) {
        context = tap.control->ctxs;
        if (context >= tap.control->ctx_capacity)
            return parent;
        tap.ctxs[context] = (struct nm_ctx){parent, call, slot};
        __atomic_store_n(&tap.control->ctxs, context + 1, __ATOMIC_RELEASE);
    }
    *e = (struct entry){parent, call, context};
    pairs++;
    return context;
}

uint32_t contexts_child(uint32_t parent, uint32_t call, uint64_t slot)
{
    struct entry *e = &recent[hash(parent, call) >> (64 - RECENT_LOG2)];
    if (!e->context || e->parent != parent || e->call != call)
        *e = (struct entry){parent, call, intern(parent, call, slot)};
    return e->context;
}

/* Leaves the frames that a stack pointer of `sp` has left. The kernel changes stacks under interrupts: frames of
 * another stack below are kept, frames of another stack above are left when the one below is used again. */
static void unwind(struct shadow_stack *s, int kernel, uint64_t sp)
{
    uint32_t depth = s->depth;
    if (kernel) {
        while (depth && (s->frames[depth - 1].sp ^ sp) >> KERNEL_STACK_LOG2)
            depth--;
        if (!depth)
            return;
    }
    while (depth && s->frames[depth - 1].sp <= sp && (!kernel || !((s->frames[depth - 1].sp ^ sp) >> KERNEL_STACK_LOG2)))
        depth--;
    s->depth = depth;
}

static int has_room(struct shadow_stack *s, uint32_t depth)
{
    if (depth <= s->capacity)
        return 1;
    uint32_t capacity = s->capacity ? s->capacity : 64;
    while (capacity < depth)
        capacity *= 2;
    struct frame *frames = realloc(s->frames, capacity * sizeof *frames);
    if (!frames)
        return 0;
    s->frames = frames;
    s->capacity = capacity;
    return 1;
}

static void append(struct shadow_stack *to, const struct frame *frames, uint32_t count)
{
    if (to->depth + count > DEPTH_MAX || !has_room(to, to->depth + count))
        return;
    memcpy(to->frames + to->depth, frames, count * sizeof *frames);
    to->depth += count;
}

/* Go's runtime does a part of its work on the stack of its thread, which may lie above the goroutine's, and then goes
 * on there: the return of the last call before finds the frames as they were. */
static void come_back(struct task *t, uint64_t sp)
{
    struct shadow_stack *s = &t->stacks[USER], *left = &t->left;
    if (!left->depth || left->frames[left->depth - 1].sp != sp || (s->depth && s->frames[s->depth - 1].sp == sp))
        return;
    append(s, left->frames, left->depth);
    left->depth = 0;
}

void contexts_forget_user(struct task *t) { t->stacks[USER].depth = t->left.depth = 0; }

void contexts_call(struct vcpu *v, const struct nm_insn *insn, int kernel, uint64_t sp)
{
    if (!v->task)
        return;
    struct shadow_stack *s = &v->task->stacks[kernel];
    const uint32_t depth = s->depth;
    unwind(s, kernel, sp);
    if (!kernel && s->depth < depth) {
        v->task->left.depth = 0;
        append(&v->task->left, s->frames + s->depth, depth - s->depth);
    }
    if (s->depth == DEPTH_MAX || !has_room(s, s->depth + 1))
        return;
    uint32_t context = contexts_child(contexts_now(s), insn_id(insn), sp);
    s->frames[s->depth++] = (struct frame){sp, context};
}

/* The filter may have dropped all that ran since the last change of context: the site of what user mode maps must be
 * right. A pause sees no calls, so that what is mapped in it has no site. */
void contexts_send_user(struct vcpu *v)
{
    const int unknown = !v->task || v->attention & ATTEND_PAUSED;
    contexts_send(v, unknown ? 0 : contexts_now(&v->task->stacks[USER]));
}

void contexts_send(struct vcpu *v, uint32_t context)
{
    if (!tap.contexts || context == v->context)
        return;
    ring_control(v, NM_C_CONTEXT, context, 0, 0, NULL, 0);
    v->context = context;
}

uint32_t contexts_on_stack(const struct vcpu *v, uint64_t sp, uint64_t end)
{
    const struct shadow_stack *s = &v->task->stacks[USER];
    if (!s->depth || s->frames[s->depth - 1].sp != sp)
        return 0;
    uint32_t first = s->depth, context = 0;
    while (first && s->frames[first - 1].sp < end)
        first--;
    if (!first)
        return contexts_now(s);
    for (uint32_t at = first; at < s->depth; at++)
        context = contexts_child(context, tap.ctxs[s->frames[at].context].call, s->frames[at].sp);
    return context;
}

void contexts_return(struct vcpu *v, int kernel, uint64_t sp)
{
    if (!v->task)
        return;
    if (!kernel)
        come_back(v->task, sp);
    unwind(&v->task->stacks[kernel], kernel, sp);
}
