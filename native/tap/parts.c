/* SPDX-License-Identifier: GPL-2.0-or-later
 *
 * The parts of a run: between two of them the guest runs without callbacks but those of triggers, several times as
 * fast. The consumer requests a change (`nm_control.pause`), a thread passes it on to the thread that runs the vCPUs,
 * and that one drops all translated code, which is translated anew with other callbacks.
 *
 * The consumer may have calls followed in a pause (`nm_control.follow`), so that objects that are allocated there have
 * their call sites; in other pauses callers.c looks for calls that were seen before. Marks, heap objects and the end of
 * the command come by triggers in any pause. Mappings are read from the guest's perf rings now and then, so that none
 * overruns. Calls, interrupts and TLB flushes are not seen then: a part begins with empty filters, an empty soft TLB
 * and empty shadow stacks.
 */
#include "engine.h"

enum { PAUSE_POLL_LOOKS = 5 }; /* looks of the watching thread between two readings of the perf rings */

static int changing; /* a change is on its way */
static int follows;  /* the pause under way follows calls */
static int polling;  /* a reading of the rings is on its way */

static void every_vcpu(void (*does)(struct vcpu *))
{
    for (uint32_t i = 0; i < tap.vcpus; i++)
        does(&tap_vcpus[i]);
}

static void leave(struct vcpu *v)
{
    window_enter_slice(v);
    maps_poll(v);
    tasks_enter(v);
    ring_publish(v, 0);
    filter_clear(v);
    fetch_clear(v);
    __atomic_fetch_or(&v->attention, follows ? ATTEND_PENDING : ATTEND_PAUSED, __ATOMIC_RELAXED);
}

static void go_on(struct vcpu *v)
{
    window_enter_slice(v);
    softtlb_flush(v);
    filter_clear(v);
    fetch_clear(v);
    v->branch = NULL;
    maps_poll(v);
    tasks_enter(v);
    ring_publish(v, 0);
    __atomic_fetch_and(&v->attention, ~(uint32_t)(ATTEND_PAUSED | ATTEND_PENDING), __ATOMIC_RELAXED);
}

static void change(void *cpu, void *wanted);

/* The part or the pause under way has had its time: parts and pauses of the same lengths, by the clock of the guest's
 * instructions, make each stretch of the run as likely to be recorded as any other, however fast QEMU runs it. */
static void time_is_over(void *unused)
{
    (void)unused;
    if (__atomic_exchange_n(&changing, 1, __ATOMIC_SEQ_CST))
        return;
    const int pauses = !tap.control->paused;
    __atomic_store_n(&tap.control->pause, (uint32_t)pauses, __ATOMIC_RELEASE);
    engine_run_alone(change, pauses ? &changing : NULL);
}

/* Counts the part or the pause that ends now, where the window was open all the while. */
static void pass(int is_over_pause, uint64_t now_ns)
{
    static uint64_t since_ns;
    if (since_ns)
        tap.control->passed_ns[is_over_pause] += now_ns - since_ns;
    since_ns = tap.control->opened ? now_ns : 0;
}

/* A change is made: a part begins, or a pause. */
static void changed(int is_paused, const uint64_t *length_ns)
{
    __atomic_store_n(&tap.control->paused, (uint32_t)is_paused, __ATOMIC_RELEASE);
    __atomic_store_n(&changing, 0, __ATOMIC_RELEASE);
    if (!engine_has_clock())
        return;
    tap.control->now_ns = tap.control->changed_ns = engine_now_ns();
    pass(!is_paused, tap.control->changed_ns);
    __atomic_fetch_add(&tap.control->changes, 1, __ATOMIC_RELEASE);
    engine_alarm(__atomic_load_n(length_ns, __ATOMIC_RELAXED), time_is_over);
}

static void paused(void *unused)
{
    (void)unused;
    engine_on_translation(follows ? translate_calls : window_look_for_triggers);
    changed(1, &tap.control->pause_ns);
}

static void begin_part(void)
{
    if (window_is_open()) {
        window_mark(NM_MARK_PART);
        every_vcpu(go_on);
        engine_on_translation(translate_block);
    }
    changed(0, &tap.control->part_ns);
}

static void resumed(void *unused)
{
    (void)unused;
    tasks_begin_part(follows);
    follows = 0;
    begin_part();
}

/* Between two instructions of the guest, while no vCPU runs. */
static void change(void *cpu, void *wanted)
{
    (void)cpu;
    if (!window_is_open()) {
        __atomic_store_n(&changing, 0, __ATOMIC_RELEASE);
    } else if (wanted) {
        follows = __atomic_load_n(&tap.control->follow, __ATOMIC_ACQUIRE) != 0;
        every_vcpu(leave);
        engine_reset(paused);
    } else {
        engine_reset(resumed);
    }
}

/* The window's start, before which the guest ran as in a pause. */
static void start(void *cpu, void *unused)
{
    (void)cpu, (void)unused;
    window_start_now();
    engine_reset(resumed);
}

void parts_start(void)
{
    if (!__atomic_exchange_n(&changing, 1, __ATOMIC_SEQ_CST))
        engine_run_alone(start, NULL);
}

void parts_begin_first(void) { changed(0, &tap.control->part_ns); }

void parts_begin_paused(void)
{
    for (uint32_t i = 0; i < tap.vcpus; i++) {
        ring_publish(&tap_vcpus[i], 0); /* the consumer's time begins with the first chunk */
        __atomic_fetch_or(&tap_vcpus[i].attention, ATTEND_PAUSED, __ATOMIC_RELAXED);
    }
    paused(NULL);
}

/* In a slice of its own: what fills a chunk is published at once, and chunks come in the order of slices. */
static void poll_one(struct vcpu *v)
{
    window_enter_slice(v);
    maps_poll(v);
}

static void poll(void *cpu, void *unused)
{
    (void)cpu, (void)unused;
    if (window_is_open() && tap.control->paused)
        every_vcpu(poll_one);
    __atomic_store_n(&polling, 0, __ATOMIC_RELEASE);
}

/* Nothing is looked for behind the window. */
static void closed(void *unused) { (void)unused; }

static void close(void *cpu, void *unused)
{
    (void)cpu, (void)unused;
    window_close_now();
    engine_reset(closed);
}

int parts_close(void)
{
    if (!engine_can_pause())
        return 0;
    engine_run_alone(close, NULL);
    return 1;
}

int parts_see_no_references(const struct vcpu *v) { return follows || v->attention & ATTEND_PAUSED; }

void parts_follow(struct vcpu *v)
{
    window_enter_slice(v);
    maps_poll(v);
    if (tasks_changed(v))
        tasks_enter(v);
}

void parts_look(int pending, int starts)
{
    static unsigned looks;
    if (!engine_can_pause() || __atomic_load_n(&changing, __ATOMIC_ACQUIRE))
        return;
    if (engine_has_clock())
        __atomic_store_n(&tap.control->now_ns, engine_now_ns(), __ATOMIC_RELAXED);
    const int now = tap.control->paused != 0;
    const int wanted = pending ? now && !starts : __atomic_load_n(&tap.control->pause, __ATOMIC_ACQUIRE) != 0;
    if (now && starts) {
        parts_start();
    } else if (now != wanted) {
        __atomic_store_n(&changing, 1, __ATOMIC_RELEASE);
        engine_run_alone(change, wanted ? &changing : NULL);
    } else if (now && ++looks % PAUSE_POLL_LOOKS == 0 &&
               !__atomic_exchange_n(&polling, 1, __ATOMIC_ACQ_REL)) {
        engine_run_alone(poll, NULL);
    }
}
