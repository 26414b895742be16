/* SPDX-License-Identifier: GPL-2.0-or-later
 *
 * Finds the task that a vCPU runs: the kernel stores it in a per-CPU variable, and the tap watches that line.
 */
#include "tap.h"

#include <stdlib.h>
#include <string.h>

enum { BUCKETS = 4096 };

static struct task *buckets[BUCKETS];
static uint32_t tasks; /* so far */

/* Tasks lie in the direct map, but for the first one, which is part of the kernel's image. */
static void *task_memory(uint64_t task, uint32_t offset, uint64_t bytes)
{
    const uint64_t image = 0xffffffff80000000ULL, base = task >= image ? image : tap.control->direct_map_base;
    return task < base ? NULL : ram_at(ram_of_physical(task - base) + offset, bytes);
}

static uint32_t task_u32(uint64_t task, uint32_t offset)
{
    uint32_t value = 0;
    const void *at = task_memory(task, offset, sizeof value);
    if (at)
        memcpy(&value, at, sizeof value);
    return value;
}

static uint64_t task_u64(uint64_t task, uint32_t offset)
{
    uint64_t value = 0;
    const void *at = task_memory(task, offset, sizeof value);
    if (at)
        memcpy(&value, at, sizeof value);
    return value;
}

/* Returns the state kept of a task; begun anew when its address belongs to another process now. */
static struct task *find(uint64_t address, uint32_t pid)
{
    struct task **bucket = &buckets[(address >> 6) * 0x9e3779b97f4a7c15ULL >> 52];
    struct task *t = *bucket;
    while (t && t->address != address)
        t = t->next;
    if (!t) {
        t = calloc(1, sizeof *t);
        if (!t)
            return NULL;
        t->address = address;
        t->pid = pid;
        t->number = ++tasks;
        t->next = *bucket;
        *bucket = t;
    }
    if (t->pid != pid) {
        t->pid = pid;
        t->number = ++tasks;
        t->irq_depth = 0;
        t->skip = 0;
        t->mm = t->mailbox = t->mail_sequence = t->allocates_bytes = 0;
        t->stacks[KERNEL].depth = 0;
        contexts_forget_user(t);
    }
    return t;
}

struct nm_usage tasks_usage(struct vcpu *v)
{
    const struct nm_usage now = {v->instructions[USER], v->instructions[KERNEL], v->loads[USER],
                                 v->loads[KERNEL],      v->stores[USER],         v->stores[KERNEL]};
    const struct nm_usage was = v->reported;
    v->reported = now;
    return (struct nm_usage){now.user_instructions - was.user_instructions,
                             now.kernel_instructions - was.kernel_instructions,
                             now.user_loads - was.user_loads,
                             now.kernel_loads - was.kernel_loads,
                             now.user_stores - was.user_stores,
                             now.kernel_stores - was.kernel_stores};
}

/* The guest's agent is its init. If only the command's user mode is recorded, the agent's is left out. */
static int is_left_out(const struct task *t)
{
    return t->skip || (tap.control->only_user && t->pid == 1);
}

static void apply_skip(struct vcpu *v)
{
    if (v->task && is_left_out(v->task)) {
        __atomic_fetch_or(&v->attention, ATTEND_SKIP, __ATOMIC_RELAXED);
        filter_set_aside(v);
    } else {
        __atomic_fetch_and(&v->attention, ~(uint32_t)ATTEND_SKIP, __ATOMIC_RELAXED);
        filter_bring_back(v);
    }
}

void tasks_enter(struct vcpu *v)
{
    const struct nm_control *c = tap.control;
    const uint64_t offset = ram_of_physical(c->current_task_paddr[v->index]);
    const void *variable = ram_at(offset, 8);
    uint64_t address;
    if (!variable)
        return;
    memcpy(&address, variable, 8);
    const uint32_t pid = task_u32(address, c->task_pid_offset), tgid = task_u32(address, c->task_tgid_offset);
    struct {
        uint64_t mm, outgoing;
        char comm[16];
        struct nm_usage usage;
    } payload = {task_u64(address, c->task_mm_offset), v->task ? v->task->address : 0, {0}, tasks_usage(v)};
    const void *comm = task_memory(address, c->task_comm_offset, 16);
    if (comm)
        memcpy(payload.comm, comm, 16);
    maps_poll(v);
    ring_control(v, NM_C_SWITCH, address, 0, pid | (uint64_t)tgid << 32, &payload, sizeof payload);
    struct task *task = find(address, pid);
    /* Or a thread's first flush would look like an exec. */
    if (task && !task->mm)
        task->mm = payload.mm;
    if (tap.by_task && task != v->task) {
        filter_clear(v);
        fetch_clear(v);
    }
    v->task = task;
    apply_skip(v);
}

int tasks_changed(const struct vcpu *v)
{
    uint64_t address;
    const void *variable = ram_at(ram_of_physical(tap.control->current_task_paddr[v->index]), sizeof address);
    if (!variable)
        return 0;
    memcpy(&address, variable, sizeof address);
    return !v->task || v->task->address != address || v->task->pid != task_u32(address, tap.control->task_pid_offset);
}

void tasks_begin_part(int followed)
{
    for (unsigned bucket = 0; bucket < BUCKETS; bucket++)
        for (struct task *t = buckets[bucket]; t; t = t->next) {
            t->irq_depth = t->stacks[KERNEL].depth = 0;
            if (!followed)
                contexts_forget_user(t);
        }
}

uint32_t tasks_pid(const struct vcpu *v) { return v->task ? v->task->pid : 0; }

/* After an exec the stack is another one. */
void tasks_address_space(struct vcpu *v)
{
    struct task *t = v->task;
    const uint64_t mm = t ? task_u64(t->address, tap.control->task_mm_offset) : 0;
    if (!mm || mm == t->mm)
        return;
    t->mm = mm;
    t->mailbox = t->mail_sequence = t->allocates_bytes = 0;
    contexts_forget_user(t);
    tap.executed = v;
    t->skip = 0;
    apply_skip(v);
}

void tasks_stored(struct vcpu *v, uint64_t offset)
{
    if (offset == ram_of_physical(tap.control->current_task_paddr[v->index]))
        tasks_enter(v);
}

void tasks_skip(struct vcpu *v, int on)
{
    if (!v->task || (!on && !v->task->skip))
        return;
    v->task->skip += on ? 1 : -1;
    apply_skip(v);
}
