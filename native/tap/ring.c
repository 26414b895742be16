/* SPDX-License-Identifier: GPL-2.0-or-later
 *
 * Records to the consumer. Each vCPU fills a chunk of its own and copies it into the ring when it is full, at the end
 * of its slice, and before a halt; the place in the ring, and so the recorded order, is taken at that moment. A full
 * ring makes the guest wait.
 */
#define _GNU_SOURCE
#include "tap.h"

#include <linux/futex.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

static uint64_t published;

int ring_init(void)
{
    const struct nm_control *c = tap.control;
    const uint32_t largest = sizeof(struct nm_chunk) + sizeof(struct nm_record) + CODE_PAYLOAD_MAX + 15;
    if (c->chunk_bytes < largest || c->chunk_bytes % 64 || c->chunk_count < 2) {
        tap_fail("a ring of %u chunks of %u bytes cannot be used", c->chunk_count, c->chunk_bytes);
        return -1;
    }
    tap.chunk_capacity = (uint32_t)((c->chunk_bytes - sizeof(struct nm_chunk)) / sizeof(struct nm_record));
    for (uint32_t i = 0; i < tap.vcpus; i++) {
        struct vcpu *v = &tap_vcpus[i];
        v->index = i;
        v->records = aligned_alloc(64, c->chunk_bytes);
        if (!v->records) {
            tap_fail("out of memory for a chunk of records");
            return -1;
        }
    }
    return 0;
}

static void futex(void *word, int operation, uint32_t value)
{
    const struct timespec limit = {.tv_nsec = 100000000};
    syscall(SYS_futex, word, operation, value, operation == FUTEX_WAIT ? &limit : NULL, NULL, 0);
}

void ring_wake(void)
{
    if (__atomic_exchange_n(&tap.control->consumer_waits, 0, __ATOMIC_SEQ_CST))
        futex(&tap.control->published, FUTEX_WAKE, INT32_MAX);
}

static void wait_for_room(void)
{
    struct nm_control *c = tap.control;
    for (;;) {
        uint64_t consumed = __atomic_load_n(&c->consumed, __ATOMIC_ACQUIRE);
        if (published - consumed < c->chunk_count)
            return;
        __atomic_store_n(&c->plugin_waits, 1, __ATOMIC_SEQ_CST);
        if (__atomic_load_n(&c->consumed, __ATOMIC_SEQ_CST) == consumed)
            futex(&c->consumed, FUTEX_WAIT, (uint32_t)consumed);
        __atomic_store_n(&c->plugin_waits, 0, __ATOMIC_SEQ_CST);
    }
}

void ring_await_facts(void)
{
    while (!__atomic_load_n(&tap.control->facts_ready, __ATOMIC_ACQUIRE))
        futex(&tap.control->facts_ready, FUTEX_WAIT, 0);
}

void ring_await_consumer(void)
{
    struct nm_control *c = tap.control;
    const uint64_t until = published;
    for (int tries = 0; tries < 20; tries++) {
        uint64_t consumed = __atomic_load_n(&c->consumed, __ATOMIC_ACQUIRE);
        if (consumed >= until)
            return;
        __atomic_store_n(&c->plugin_waits, 1, __ATOMIC_SEQ_CST);
        if (__atomic_load_n(&c->consumed, __ATOMIC_SEQ_CST) == consumed)
            futex(&c->consumed, FUTEX_WAIT, (uint32_t)consumed);
        __atomic_store_n(&c->plugin_waits, 0, __ATOMIC_SEQ_CST);
    }
}

void ring_publish(struct vcpu *v, uint32_t flags)
{
    if (v->used == 0 && !flags)
        return;
    struct nm_control *c = tap.control;
    if (v->used == 0)
        ring_reserve(v, 0);
    wait_for_room();
    struct nm_chunk *chunk = (void *)(tap.file + c->chunks_offset + published % c->chunk_count * c->chunk_bytes);
    v->chunk.seq = published;
    v->chunk.records = v->used;
    v->chunk.instructions = v->instructions[USER] + v->instructions[KERNEL];
    v->chunk.flags = flags;
    *chunk = v->chunk;
    memcpy(chunk + 1, v->records, v->used * sizeof(struct nm_record));
    published++;
    __atomic_store_n(&c->published, published, __ATOMIC_SEQ_CST);
    ring_wake();
    v->used = 0;
    v->wide.record = NULL;
    if (tap.by_task) { /* a replay puts other tasks' chunks between this one and the next */
        filter_clear(v);
        fetch_clear(v);
    }
    refill_look(v);
}

struct nm_record *ring_reserve(struct vcpu *v, uint32_t records)
{
    if (unlikely(v->used + records > tap.chunk_capacity))
        ring_publish(v, 0);
    if (v->used == 0) {
        v->chunk.vcpu = v->index;
        v->chunk.context = v->context;
        v->chunk.task = v->task ? v->task->address : 0;
    }
    return v->records + v->used;
}

void ring_control(struct vcpu *v, enum nm_control_kind kind, uint64_t argument, unsigned small, uint64_t value,
                  const void *payload, uint32_t payload_bytes)
{
    uint32_t more = (payload_bytes + 15) / 16;
    struct nm_record *r = ring_reserve(v, 1 + more);
    r->a = (argument & 0xffffffffffffULL) | (uint64_t)NM_CONTROL << 48 | (uint64_t)kind << 52 | (uint64_t)small << 58;
    r->b = value;
    if (more) {
        r[more] = (struct nm_record){0, 0};
        memcpy(r + 1, payload, payload_bytes);
    }
    v->used += 1 + more;
    v->wide.record = NULL;
}
