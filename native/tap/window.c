/* SPDX-License-Identifier: GPL-2.0-or-later
 *
 * The window: opened and closed by triggers of the guest, closed by the consumer too; and the slices in which one TCG
 * thread runs the vCPUs. While the guest boots nothing is instrumented, and after that the triggers alone. BEGIN drops
 * what was translated, the run ahead of the command included: from QEMU 8 on a block serves wherever its page is mapped
 * (CF_PCREL) and keeps the address and the task of its first translation, which must be one of the command's. Between
 * BEGIN and a start inside the command (ATTEND_PENDING) no access gets past the slow path, so the filters stay empty;
 * tasks, maps, heap objects and shadow stacks are followed.
 */
#include "decode.h"
#include "engine.h"
#include "nearmiss_trigger.h"

#include <pthread.h>
#include <string.h>
#include <time.h>

/* With time by instructions QEMU lets a vCPU run from one timer to the next, millions of instructions, while the others
 * stand still: threads of some milliseconds would never overlap. Where all uses of a line are recorded, a part of a run
 * has half a million instructions: it must hold several slices of each vCPU. */
enum { SLICE_INSTRUCTIONS = 100000 };
enum { FIRST_MARK = 16 }; /* numbers below are enum nm_mark */

static int open_now; /* from BEGIN on */
static int pending;  /* the window's start is still awaited */
static struct vcpu *current; /* the vCPU that runs this slice */
static uint64_t slice;

int window_is_open(void) { return __atomic_load_n(&open_now, __ATOMIC_ACQUIRE); }

struct vcpu *window_vcpu(void) { return current; }

static void set_attention(struct vcpu *v, enum attention why)
{
    __atomic_fetch_or(&v->attention, why, __ATOMIC_RELAXED);
}

static void forget_all(struct vcpu *v)
{
    filter_clear(v);
    fetch_clear(v);
}

void window_fail(void)
{
    __atomic_store_n(&tap.control->state, NM_STATE_FAILED, __ATOMIC_SEQ_CST);
    __atomic_store_n(&open_now, 0, __ATOMIC_SEQ_CST);
    for (uint32_t i = 0; i < tap.vcpus; i++)
        set_attention(&tap_vcpus[i], ATTEND_CLOSED);
    tap.control->consumer_waits = 1;
    ring_wake();
}

static void mark(struct vcpu *v, uint64_t number)
{
    const struct nm_usage usage = tasks_usage(v);
    ring_control(v, NM_C_MARK, number, 0, 0, &usage, sizeof usage);
}

/* The last report of every vCPU but `last`, and its last chunk. */
static void finish_others(struct vcpu *last)
{
    for (uint32_t i = 0; i < tap.vcpus; i++) {
        struct vcpu *v = &tap_vcpus[i];
        if (v == last)
            continue;
        v->chunk.slice = ++slice;
        maps_poll(v);
        tasks_enter(v);
        ring_publish(v, 0);
        set_attention(v, ATTEND_CLOSED);
        forget_all(v);
    }
}

void window_mark(uint64_t number) { mark(current, number); }

static void close_window(struct vcpu *v)
{
    if (!__atomic_exchange_n(&open_now, 0, __ATOMIC_SEQ_CST))
        return;
    maps_poll(v);
    mark(v, NM_MARK_END);
    ring_publish(v, 0);
    finish_others(v);
    v->chunk.slice = ++slice;
    set_attention(v, ATTEND_CLOSED);
    forget_all(v);
    __atomic_store_n(&tap.control->state, NM_STATE_CLOSED, __ATOMIC_SEQ_CST);
    ring_publish(v, NM_CHUNK_LAST);
}

void window_close_now(void) { close_window(current); }

static uint64_t executed(const struct vcpu *v) { return v->instructions[USER] + v->instructions[KERNEL]; }

static uint64_t executed_by_all(void)
{
    uint64_t sum = 0;
    for (uint32_t i = 0; i < tap.vcpus; i++)
        sum += executed(&tap_vcpus[i]);
    return sum;
}

/* How far this vCPU may go before the sum of all is looked at again: with one TCG thread the others stand still. */
static void limit_instructions(struct vcpu *v)
{
    const uint64_t sum = executed_by_all(), wanted = tap.control->for_instructions;
    uint64_t left = sharing_enter_epoch(v, sum);
    if (wanted && (wanted <= sum || wanted - sum < left))
        left = wanted > sum ? wanted - sum : 0;
    if (tap.vcpus > 1 && left > SLICE_INSTRUCTIONS)
        left = SLICE_INSTRUCTIONS;
    if (left != ~0ULL)
        v->instructions_limit = executed(v) + left;
}

int window_spent(struct vcpu *v)
{
    if (tap.vcpus > 1 && executed(v) - v->slice_begin >= SLICE_INSTRUCTIONS) {
        v->slice_begin = executed(v);
        engine_end_slice(v->index);
    }
    limit_instructions(v);
    const uint64_t wanted = tap.control->for_instructions;
    const int spent = wanted && executed_by_all() >= wanted;
    if (spent)
        close_window(v);
    return spent;
}

/* QEMU counts some by itself, in the window or not. */
static void forget_executions(void)
{
    tap.control->prefetches = 0;
    for (uint32_t i = 0; i < tap.control->insns; i++)
        tap.insns[i].executions = 0;
}

/* The window begins: from here on accesses are recorded and instructions counted. */
static void start_window(struct vcpu *v)
{
    if (!__atomic_exchange_n(&pending, 0, __ATOMIC_SEQ_CST))
        return;
    maps_poll(v);
    forget_executions();
    for (uint32_t i = 0; i < tap.vcpus; i++) {
        limit_instructions(&tap_vcpus[i]);
        __atomic_fetch_and(&tap_vcpus[i].attention, ~(uint32_t)(ATTEND_PENDING | ATTEND_START), __ATOMIC_RELAXED);
    }
    cleared_begin();
    __atomic_store_n(&tap.control->opened, 1, __ATOMIC_SEQ_CST);
}

static void marked(struct vcpu *v, uint64_t number)
{
    const struct nm_control *c = tap.control;
    const int starts = pending;
    mark(v, number);
    const int from_mark = c->from_kind == NM_FROM_MARK || c->from_kind == NM_FROM_NEAR_MARK;
    if (starts && from_mark && c->from_value == number && v->attention & ATTEND_PAUSED)
        parts_start();
    else if (starts && from_mark && c->from_value == number)
        start_window(v);
    else if (!starts && c->until_mark == number)
        close_window(v);
}

int window_awaits_maps(void)
{
    return tap.control->from_kind == NM_FROM_SYMBOL && pending &&
           !__atomic_load_n(&tap.control->from_value, __ATOMIC_ACQUIRE);
}

static void on_symbol(unsigned index, void *unused)
{
    (void)unused;
    struct vcpu *v = &tap_vcpus[index];
    if (!(v->attention & ATTEND_PENDING))
        return;
    window_attend(v, USER);
    start_window(v);
}

/* Called before the instruction's other callbacks are registered: what it does itself is in the window. */
void window_symbol_register(struct qemu_plugin_tb *tb, size_t index, uint64_t vaddr, const uint8_t *code, size_t size)
{
    const struct nm_control *c = tap.control;
    if (likely(c->from_kind != NM_FROM_SYMBOL) || !pending)
        return;
    struct vcpu *here = window_vcpu();
    if (window_awaits_maps() && here)
        maps_poll(here);
    if (vaddr != __atomic_load_n(&c->from_value, __ATOMIC_ACQUIRE) ||
        memcmp(code, &c->from_code, size < sizeof c->from_code ? size : sizeof c->from_code))
        return;
    if (index == 0)
        qemu_plugin_register_vcpu_tb_exec_cb(tb, on_symbol, QEMU_PLUGIN_CB_NO_REGS, NULL);
    else
        qemu_plugin_register_vcpu_insn_exec_cb(qemu_plugin_tb_get_insn(tb, index), on_symbol, QEMU_PLUGIN_CB_NO_REGS,
                                               NULL);
}

static void change_slice(struct vcpu *v)
{
    if (current) {
        maps_poll(current);
        ring_publish(current, 0);
        set_attention(current, ATTEND_NOT_CURRENT);
    }
    current = v;
    v->slice_begin = executed(v);
    v->chunk.slice = ++slice;
    __atomic_fetch_and(&v->attention, ~(uint32_t)ATTEND_NOT_CURRENT, __ATOMIC_RELAXED);
    if (tap.control->clear_on_slice)
        forget_all(v);
    limit_instructions(v);
}

void window_enter_slice(struct vcpu *v)
{
    if (current != v)
        change_slice(v);
}

int window_attend(struct vcpu *v, int kernel)
{
    uint32_t why = __atomic_load_n(&v->attention, __ATOMIC_RELAXED);
    if (why & (ATTEND_CLOSED | ATTEND_PAUSED))
        return 0;
    if (why & ATTEND_NOT_CURRENT)
        change_slice(v);
    if (why & ATTEND_STOP) {
        close_window(v);
        return 0;
    }
    if (why & ATTEND_PENDING) {
        if (!(why & ATTEND_START))
            return 0;
        start_window(v);
    }
    return !(why & ATTEND_SKIP) || kernel;
}

int window_attend_run(struct vcpu *v, int kernel)
{
    if (v->attention & ATTEND_REFILL)
        refill(v);
    const int recorded = window_attend(v, kernel);
    if (v->attention & ATTEND_PENDING)
        maps_poll(v);
    return recorded;
}

/* Passes the consumer's wish to start, pause or stop on to vCPUs that would not look. */
static void *watch_consumer(void *unused)
{
    const struct timespec pause = {.tv_nsec = 10000000};
    while (window_is_open()) {
        if (__atomic_load_n(&tap.control->stop, __ATOMIC_ACQUIRE) && !parts_close())
            for (uint32_t i = 0; i < tap.vcpus; i++)
                set_attention(&tap_vcpus[i], ATTEND_STOP);
        const int starts = pending && __atomic_load_n(&tap.control->start, __ATOMIC_ACQUIRE);
        for (uint32_t i = 0; starts && i < tap.vcpus; i++)
            set_attention(&tap_vcpus[i], ATTEND_START);
        parts_look(pending, starts);
        nanosleep(&pause, NULL);
    }
    return unused;
}

static void open_window(void)
{
    struct vcpu *begins = current;
    current = NULL;
    pending = tap.control->from_kind != NM_FROM_BEGIN;
    for (uint32_t i = 0; i < tap.vcpus; i++) {
        struct vcpu *v = &tap_vcpus[i];
        maps_open(v);
        v->watched_line = ram_of_physical(tap.control->current_task_paddr[i]) >> tap.line_log2;
        v->attention = pending ? ATTEND_PENDING : 0;
        if (v == begins)
            continue;
        v->chunk.slice = ++slice;
        tasks_enter(v);
        ring_publish(v, 0);
        set_attention(v, ATTEND_NOT_CURRENT);
    }
    current = begins;
    begins->chunk.slice = ++slice;
    tasks_enter(begins);
    tap.control->opened_by = tasks_pid(begins);
    mark(begins, NM_MARK_BEGIN);
    code_open(begins);
    for (uint32_t i = 0; i < tap.vcpus; i++)
        limit_instructions(&tap_vcpus[i]);
    tap.control->opened = !pending;
    __atomic_store_n(&open_now, 1, __ATOMIC_SEQ_CST);
    __atomic_store_n(&tap.control->state, NM_STATE_RECORDING, __ATOMIC_SEQ_CST);
    pthread_t thread;
    if (pthread_create(&thread, NULL, watch_consumer, NULL) == 0)
        pthread_detach(thread);
}

void window_start_now(void) { start_window(current); }

/* Whether the guest runs as in a pause until the window opens. */
static int begins_paused(void)
{
    const uint32_t from = tap.control->from_kind;
    return (from == NM_FROM_CONSUMER || from == NM_FROM_NEAR_MARK) && engine_can_pause();
}

/* QEMU has dropped all translated code and every callback: from here on everything is seen. */
static void instrument(void *unused)
{
    (void)unused;
    engine_on_translation(translate_block);
}

static void open_afresh(void *unused)
{
    open_window();
    if (begins_paused()) {
        parts_begin_paused();
    } else {
        instrument(unused);
        parts_begin_first();
    }
}

static void begin(struct vcpu *v)
{
    static int begun;
    if (__atomic_exchange_n(&begun, 1, __ATOMIC_SEQ_CST))
        return;
    if (ram_init() || sharing_init())
        return;
    current = v;
    engine_reset(open_afresh);
}

static void recording(struct vcpu *v, uint32_t trigger)
{
    if (v->attention & ATTEND_CLOSED)
        return;
    if (v->attention & ATTEND_PAUSED)
        parts_follow(v);
    else
        window_attend(v, USER);
    if (v->attention & ATTEND_CLOSED)
        return;
    switch (trigger) {
    case NEARMISS_TRIGGER_END:
        tap.control->closed_by = tasks_pid(v);
        close_window(v);
        break;
    case NEARMISS_TRIGGER_SKIP_ON:
        tasks_skip(v, 1);
        break;
    case NEARMISS_TRIGGER_SKIP_OFF:
        tasks_skip(v, 0);
        break;
    case NEARMISS_TRIGGER_HEAP:
        heap_mail(v);
        break;
    case NEARMISS_TRIGGER_MAPS:
        maps_poll(v);
        break;
    case NEARMISS_TRIGGER_MARK:
        marked(v, FIRST_MARK + NEARMISS_TRIGGER_MARK_MASK + 1); /* a number that no numbered mark has */
        break;
    default:
        marked(v, FIRST_MARK + (trigger & NEARMISS_TRIGGER_MARK_MASK));
        break;
    }
}

static void on_trigger(unsigned index, void *data)
{
    struct vcpu *v = &tap_vcpus[index];
    const uint32_t trigger = (uint32_t)(uintptr_t)data;
    if (trigger == NEARMISS_TRIGGER_BEGIN)
        begin(v);
    else
        recording(v, trigger);
}

void window_trigger_register(struct qemu_plugin_insn *at, uint32_t immediate)
{
    const int numbered = (immediate & ~(uint32_t)NEARMISS_TRIGGER_MARK_MASK) == NEARMISS_TRIGGER_MARK_BASE;
    if (numbered || (immediate >= NEARMISS_TRIGGER_BEGIN && immediate <= NEARMISS_TRIGGER_MAPS))
        qemu_plugin_register_vcpu_insn_exec_cb(at, on_trigger, QEMU_PLUGIN_CB_NO_REGS, (void *)(uintptr_t)immediate);
}

void window_look_for_triggers(struct qemu_plugin_tb *tb)
{
    const size_t count = qemu_plugin_tb_n_insns(tb);
    allocators_register(tb);
    cleared_register(tb, 1);
    for (size_t i = 0; i < count; i++) {
        struct qemu_plugin_insn *at = qemu_plugin_tb_get_insn(tb, i);
        uint8_t buffer[16];
        if (qemu_plugin_insn_size(at) != 8)
            continue;
        const uint8_t *code = engine_insn_bytes(at, 8, buffer);
        if (!(decode(code, 8) & D_TRIGGER))
            continue;
        window_trigger_register(at, decode_trigger(code));
        if (i && decode_trigger(code) == NEARMISS_TRIGGER_HEAP)
            heap_watch_mail(qemu_plugin_tb_get_insn(tb, i - 1));
    }
}

/* A callback at translation costs a fifth of the boot, in which no trigger is executed: there is none until the
 * consumer has the facts of the guest's kernel. QEMU hands the callback to each vCPU before that vCPU runs on. */
static void *become_attentive(void *unused)
{
    ring_await_facts();
    if (engine_number_vcpus())
        return unused;
    engine_on_translation(window_look_for_triggers);
    uint32_t booting = NM_STATE_BOOTING;
    __atomic_compare_exchange_n(&tap.control->state, &booting, NM_STATE_ATTENTIVE, 0, __ATOMIC_SEQ_CST,
                                __ATOMIC_SEQ_CST);
    return unused;
}

int window_init(void)
{
    for (uint32_t i = 0; i < tap.vcpus; i++) {
        struct vcpu *v = &tap_vcpus[i];
        v->attention = ATTEND_CLOSED;
        v->instructions_limit = ~0ULL;
        v->tlb_generation = 1;
        for (uint32_t s = 0; s < FILTER_SETS_MAX; s++)
            v->data[s] = v->aside.data[s] = (struct filter_entry){NOWHERE, NOWHERE, 0, NO_LINE};
        fetch_clear(v);
    }
    pthread_t thread;
    if (pthread_create(&thread, NULL, become_attentive, NULL)) {
        tap_fail("no thread to wait for the facts of the guest's kernel");
        return -1;
    }
    pthread_detach(thread);
    return 0;
}
