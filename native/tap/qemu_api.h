/* SPDX-License-Identifier: GPL-2.0-or-later
 *
 * The part of QEMU's TCG plugin interface that the tap uses, declared here because Debian ships no header for it.
 * Versions 1 (QEMU 7.2 and 8) to 7 (QEMU 11.1) differ in a few functions, which engine.c alone calls.
 */
#ifndef NEARMISS_QEMU_API_H
#define NEARMISS_QEMU_API_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define QEMU_EXPORT __attribute__((visibility("default")))

typedef uint64_t qemu_plugin_id_t;
typedef uint32_t qemu_plugin_meminfo_t;

typedef struct {
    const char *target_name;
    struct {
        int min, cur;
    } version;
    bool system_emulation;
    union {
        struct {
            int smp_vcpus, max_vcpus;
        } system;
    };
} qemu_info_t;

struct qemu_plugin_tb;
struct qemu_plugin_insn;
struct qemu_plugin_hwaddr;

enum qemu_plugin_mem_rw { QEMU_PLUGIN_MEM_R = 1, QEMU_PLUGIN_MEM_W = 2, QEMU_PLUGIN_MEM_RW = 3 };
enum qemu_plugin_cb_flags { QEMU_PLUGIN_CB_NO_REGS = 0, QEMU_PLUGIN_CB_R_REGS = 1 };
enum qemu_plugin_op { QEMU_PLUGIN_INLINE_ADD_U64 = 0 };

typedef void (*qemu_plugin_exec_cb_t)(unsigned vcpu, void *data);
typedef void (*qemu_plugin_mem_cb_t)(unsigned vcpu, qemu_plugin_meminfo_t info, uint64_t vaddr, void *data);

#define QEMU_IMPORT __attribute__((visibility("default"))) extern

/* The callback has one argument: the plugin's number, from version 7 on `user_data`, which earlier versions ignore. */
QEMU_IMPORT void qemu_plugin_reset(qemu_plugin_id_t, void (*)(void *), void *user_data);
/* The callback takes the plugin's number and the block, from version 7 on the block and `user_data`. */
QEMU_IMPORT void qemu_plugin_register_vcpu_tb_trans_cb(qemu_plugin_id_t, void *callback, void *user_data);
QEMU_IMPORT void qemu_plugin_register_vcpu_tb_exec_cb(struct qemu_plugin_tb *, qemu_plugin_exec_cb_t,
                                                      enum qemu_plugin_cb_flags, void *data);
QEMU_IMPORT void qemu_plugin_register_vcpu_insn_exec_cb(struct qemu_plugin_insn *, qemu_plugin_exec_cb_t,
                                                        enum qemu_plugin_cb_flags, void *data);
QEMU_IMPORT void qemu_plugin_register_vcpu_mem_cb(struct qemu_plugin_insn *, qemu_plugin_mem_cb_t,
                                                  enum qemu_plugin_cb_flags, enum qemu_plugin_mem_rw, void *data);
QEMU_IMPORT size_t qemu_plugin_tb_n_insns(const struct qemu_plugin_tb *);
QEMU_IMPORT struct qemu_plugin_insn *qemu_plugin_tb_get_insn(const struct qemu_plugin_tb *, size_t index);
QEMU_IMPORT size_t qemu_plugin_insn_size(const struct qemu_plugin_insn *);
QEMU_IMPORT uint64_t qemu_plugin_insn_vaddr(const struct qemu_plugin_insn *);
QEMU_IMPORT void *qemu_plugin_insn_haddr(const struct qemu_plugin_insn *);
QEMU_IMPORT unsigned qemu_plugin_mem_size_shift(qemu_plugin_meminfo_t);
QEMU_IMPORT bool qemu_plugin_mem_is_store(qemu_plugin_meminfo_t);
QEMU_IMPORT struct qemu_plugin_hwaddr *qemu_plugin_get_hwaddr(qemu_plugin_meminfo_t, uint64_t vaddr);
QEMU_IMPORT bool qemu_plugin_hwaddr_is_io(const struct qemu_plugin_hwaddr *);
QEMU_IMPORT uint64_t qemu_plugin_hwaddr_phys_addr(const struct qemu_plugin_hwaddr *);

/* Returns a pointer in version 1; copies to `to` and returns a length from version 3 on. */
QEMU_IMPORT void *qemu_plugin_insn_data(const struct qemu_plugin_insn *, void *to, size_t length);

/* Version 1 only. */
__attribute__((weak)) QEMU_IMPORT void qemu_plugin_register_vcpu_insn_exec_inline(struct qemu_plugin_insn *,
                                                                                  enum qemu_plugin_op, void *,
                                                                                  uint64_t);
/* Not part of the plugin interface, but every QEMU with loadable modules exports these. */
__attribute__((weak)) QEMU_IMPORT void *qemu_get_cpu(int index);
__attribute__((weak)) QEMU_IMPORT __thread void *current_cpu; /* the one that this TCG thread runs */
__attribute__((weak)) QEMU_IMPORT void tcg_cpu_init_cflags(void *cpu, bool parallel);
/* QEMU passes `data` as a union of eight bytes, which goes as a pointer does. */
__attribute__((weak)) QEMU_IMPORT void async_safe_run_on_cpu(void *cpu, void (*)(void *cpu, void *data), void *data);
__attribute__((weak)) QEMU_IMPORT void qemu_plugin_disable_mem_helpers(void *cpu); /* QEMU 7.2 */
__attribute__((weak)) QEMU_IMPORT void cpu_exit(void *cpu);
__attribute__((weak)) QEMU_IMPORT void tlb_flush(void *cpu);
__attribute__((weak)) QEMU_IMPORT void tlb_set_page(void *cpu, uint64_t vaddr, uint64_t paddr, int prot, int mmu_idx,
                                                    uint64_t size);
__attribute__((weak)) QEMU_IMPORT uint64_t cpu_get_phys_page_debug(void *cpu, uint64_t vaddr); /* ~0: none */
/* In the place of the last one from version 5 on: of the vCPU that runs. */
__attribute__((weak)) QEMU_IMPORT bool qemu_plugin_translate_vaddr(uint64_t vaddr, uint64_t *physical);
/* The clock of the guest, in nanoseconds: of its instructions, where QEMU counts them. */
enum { QEMU_CLOCK_VIRTUAL = 1, QEMU_NANOSECONDS = 1 };
/* Larger than any release's QEMUTimer. */
struct qemu_timer {
    _Alignas(16) char bytes[256];
};
__attribute__((weak)) QEMU_IMPORT int64_t qemu_clock_get_ns(int clock);
__attribute__((weak)) QEMU_IMPORT void timer_init_full(struct qemu_timer *, void *group, int clock, int scale,
                                                       int attributes, void (*)(void *), void *data);
__attribute__((weak)) QEMU_IMPORT void timer_mod_ns(struct qemu_timer *, int64_t expires_ns);
__attribute__((weak)) QEMU_IMPORT void timer_del(struct qemu_timer *);
/* Appends a register, by GDB's number, to an array of glib's, and returns its bytes. */
struct byte_array {
    uint8_t *data;
    unsigned length;
};
__attribute__((weak)) QEMU_IMPORT int x86_cpu_gdb_read_register(void *cpu, struct byte_array *, int number);
__attribute__((weak)) QEMU_IMPORT struct byte_array *g_byte_array_new(void);
__attribute__((weak)) QEMU_IMPORT struct byte_array *g_byte_array_set_size(struct byte_array *, unsigned length);

#endif
