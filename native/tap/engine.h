/* SPDX-License-Identifier: GPL-2.0-or-later
 *
 * One interface to every QEMU from 7.2 on.
 */
#ifndef NEARMISS_TAP_ENGINE_H
#define NEARMISS_TAP_ENGINE_H

#include "tap.h"

#pragma GCC visibility push(hidden)

/* An instruction's bytes, `size` of them, 16 at most: QEMU's own copy, or one in `buffer`. */
const uint8_t *engine_insn_bytes(const struct qemu_plugin_insn *, size_t size, uint8_t buffer[16]);
/* Has the callback called for each block that is translated from here on. */
void engine_on_translation(void (*callback)(struct qemu_plugin_tb *));
/* Drops all translated code and every callback, then calls `then`. */
void engine_reset(void (*then)(void *unused));
/* Calls `does` with one of the vCPUs and `data`, from the thread that runs them, while none of them runs. */
void engine_run_alone(void (*does)(void *cpu, void *data), void *data);
/* 1: `engine_now_ns` and `engine_alarm` work. */
int engine_has_clock(void);
/* The guest's clock: of its instructions, where QEMU counts them. */
uint64_t engine_now_ns(void);
/* Calls `does` between two instructions, once the guest's clock has gone on for so long; 0: never. There is one alarm. */
void engine_alarm(uint64_t after_ns, void (*does)(void *unused));
/* 1: this QEMU can drop its code again and again. */
int engine_can_pause(void);
/* Makes callbacks name the vCPU that runs, with several of them in one TCG thread; -1 where this QEMU cannot. */
int engine_number_vcpus(void);
/* Ends the recording where a callback names another vCPU than the one that runs. */
void engine_check_vcpu(uint32_t index);
/* The vCPU that QEMU translates or runs code for in this thread; -1 where this QEMU does not export it. */
int engine_vcpu(void);
/* The lowest bit of an access's size in its meminfo: 4, or 5 from QEMU 11 on; -1 where it is neither. */
int engine_size_low(void);
/* Lets the next vCPU run soon, where this QEMU can be made to. */
void engine_end_slice(uint32_t index);
/* 1: QEMU adds to a counter without a callback, which is safe in one TCG thread. */
int engine_counts_inline(void);
/* 0: QEMU 7 and 8 count the place of a second memory node twice in a physical address. */
int engine_has_right_addresses(void);
/* The page of guest RAM that the running program has at an address, or NO_PAGE. */
uint64_t engine_page(uint32_t index, uint64_t vaddr);
/* Registers, by GDB's numbers. */
enum engine_register { ENGINE_RAX = 0, ENGINE_RSP = 7 };
/* 1: registers can be read. */
int engine_reads_registers(void);
/* A register of 64-bit code, as it was when the block that runs began. */
uint64_t engine_register(uint32_t index, enum engine_register);

#pragma GCC visibility pop

#endif
