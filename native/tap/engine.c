/* SPDX-License-Identifier: GPL-2.0-or-later
 *
 * Differences between releases of QEMU. Nothing else in the tap depends on which one runs.
 *
 * The version of the plugin interface comes from nearmiss, in the environment, because QEMU reads the plugin's own
 * number before it hands over its own, and version 7 cannot be distinguished from version 6 by the functions that
 * exist.
 */
#include "engine.h"

#include <stdlib.h>
#include <string.h>

QEMU_EXPORT int qemu_plugin_version;

enum { COPIES_INSN_DATA = 3, PASSES_USER_DATA = 7 };

/* QEMU reads the version after the library's constructors ran. */
__attribute__((constructor)) static void choose_version(void)
{
    const char *version = getenv(NM_QEMU_API_VARIABLE);
    qemu_plugin_version = version ? atoi(version) : 0;
}

int engine_size_low(void)
{
    for (int low = 4; low <= 5; low++) {
        unsigned same = 0;
        while (same < 5 && qemu_plugin_mem_size_shift(same << low) == same)
            same++;
        if (same == 5 && !qemu_plugin_mem_is_store(1u << 16) && qemu_plugin_mem_is_store(2u << 16))
            return low;
    }
    return -1;
}

int engine_counts_inline(void) { return qemu_plugin_version == 1 && qemu_plugin_register_vcpu_insn_exec_inline; }

int engine_has_right_addresses(void) { return qemu_plugin_version > 1; }

const uint8_t *engine_insn_bytes(const struct qemu_plugin_insn *at, size_t size, uint8_t buffer[16])
{
    if (qemu_plugin_version < COPIES_INSN_DATA)
        return qemu_plugin_insn_data(at, NULL, 0);
    qemu_plugin_insn_data(at, buffer, size < 16 ? size : 16);
    return buffer;
}

static void translated(qemu_plugin_id_t id, struct qemu_plugin_tb *tb)
{
    (void)id;
    tap.on_translation(tb);
}

static void translated_with_user_data(struct qemu_plugin_tb *tb, void *unused)
{
    (void)unused;
    tap.on_translation(tb);
}

void engine_on_translation(void (*callback)(struct qemu_plugin_tb *))
{
    tap.on_translation = callback;
    if (qemu_plugin_version < PASSES_USER_DATA)
        qemu_plugin_register_vcpu_tb_trans_cb(tap.id, (void *)translated, NULL);
    else
        qemu_plugin_register_vcpu_tb_trans_cb(tap.id, (void *)translated_with_user_data, NULL);
}

static void (*after_reset)(void *unused);

/* QEMU 7.2 keeps a pointer to the callbacks of the instruction that a vCPU executed last, and the reset frees them: the
 * next store by a helper (a frame of an exception) would follow it. */
static void forget_callbacks(void *unused)
{
    for (uint32_t i = 0; qemu_plugin_disable_mem_helpers && i < tap.vcpus; i++)
        qemu_plugin_disable_mem_helpers(qemu_get_cpu((int)i));
    after_reset(unused);
}

/* The callback's argument is the plugin's number or user data: no tap reads it. */
void engine_reset(void (*then)(void *unused))
{
    after_reset = then;
    qemu_plugin_reset(tap.id, qemu_get_cpu ? forget_callbacks : then, NULL);
}

int engine_can_pause(void)
{
    return qemu_get_cpu && async_safe_run_on_cpu && (qemu_plugin_version > 1 || qemu_plugin_disable_mem_helpers);
}

void engine_run_alone(void (*does)(void *cpu, void *data), void *data)
{
    async_safe_run_on_cpu(qemu_get_cpu(0), does, data);
}

int engine_has_clock(void) { return qemu_clock_get_ns && timer_init_full && timer_mod_ns && timer_del; }

uint64_t engine_now_ns(void) { return (uint64_t)qemu_clock_get_ns(QEMU_CLOCK_VIRTUAL); }

/* A timer of the guest's clock ends the slice of instructions that runs: `does` is called at the very instruction. */
void engine_alarm(uint64_t after_ns, void (*does)(void *unused))
{
    static struct qemu_timer *alarm;
    if (!alarm) {
        alarm = aligned_alloc(16, sizeof *alarm);
        if (!alarm)
            return;
        memset(alarm, 0, sizeof *alarm);
        timer_init_full(alarm, NULL, QEMU_CLOCK_VIRTUAL, QEMU_NANOSECONDS, 0, does, NULL);
    }
    if (after_ns)
        timer_mod_ns(alarm, (int64_t)(engine_now_ns() + after_ns));
    else
        timer_del(alarm);
}

/* From QEMU 8.2 on a block that is translated for one CPU at a time has that CPU's number in it (gen_cpu_index in
 * accel/tcg/plugin-gen.c), and the other CPUs run it too. A block for parallel CPUs reads the number as it runs. */
int engine_number_vcpus(void)
{
    if (tap.vcpus == 1 || qemu_plugin_version == 1)
        return 0;
    if (!qemu_get_cpu || !tcg_cpu_init_cflags) {
        tap_fail("this QEMU exports no tcg_cpu_init_cflags, so the tap cannot distinguish its CPUs: trace with one CPU, "
                 "or use QEMU 7.2, 10 or 11 of Debian");
        return -1;
    }
    for (uint32_t i = 0; i < tap.vcpus; i++)
        tcg_cpu_init_cflags(qemu_get_cpu((int)i), true);
    return 0;
}

void engine_end_slice(uint32_t index)
{
    if (qemu_get_cpu && cpu_exit)
        cpu_exit(qemu_get_cpu((int)index));
}

int engine_vcpu(void)
{
    if (!qemu_get_cpu || !&current_cpu || !current_cpu)
        return -1;
    for (uint32_t i = 0; i < tap.vcpus; i++)
        if (qemu_get_cpu((int)i) == current_cpu)
            return (int)i;
    return -1;
}

void engine_check_vcpu(uint32_t index)
{
    if (unlikely(qemu_get_cpu && &current_cpu && qemu_get_cpu((int)index) != current_cpu))
        tap_fail("this QEMU names CPU %u in a callback where another runs: a defect of nearmiss; trace with one CPU", index);
}

uint64_t engine_page(uint32_t index, uint64_t vaddr)
{
    uint64_t physical = ~0ULL;
    vaddr &= ~(uint64_t)4095;
    if (qemu_plugin_translate_vaddr) {
        if (!qemu_plugin_translate_vaddr(vaddr, &physical))
            return NO_PAGE;
    } else if (qemu_get_cpu && cpu_get_phys_page_debug) {
        physical = cpu_get_phys_page_debug(qemu_get_cpu((int)index), vaddr);
    }
    const uint64_t offset = physical == ~0ULL ? ~0ULL : ram_of_physical(physical);
    return offset == ~0ULL ? NO_PAGE : offset >> 12;
}

int engine_reads_registers(void)
{
    return qemu_get_cpu && x86_cpu_gdb_read_register && g_byte_array_new && g_byte_array_set_size;
}

uint64_t engine_register(uint32_t index, enum engine_register number)
{
    static struct byte_array *bytes; /* one thread runs all vCPUs */
    uint64_t value = 0;
    if (!bytes)
        bytes = g_byte_array_new();
    g_byte_array_set_size(bytes, 0);
    if (x86_cpu_gdb_read_register(qemu_get_cpu((int)index), bytes, number) == sizeof value)
        memcpy(&value, bytes->data, sizeof value);
    return value;
}
