/* SPDX-License-Identifier: GPL-2.0-or-later
 *
 * Facts that the tap needs about an x86-64 instruction and that QEMU's callbacks lack: how it touches memory. 64-bit
 * mode is assumed: 32-bit programs would be decoded slightly wrong.
 */
#ifndef NEARMISS_DECODE_H
#define NEARMISS_DECODE_H

#include <stddef.h>
#include <stdint.h>

enum decoded {
    D_MEMORY = 1u << 0,    /* may touch memory */
    D_ATOMIC = 1u << 1,    /* locked, or xchg with memory */
    D_PAIR_CX = 1u << 2,   /* lock cmpxchg8b or 16b: may store nothing */
    D_NT = 1u << 3,        /* non-temporal store */
    D_WIDE = 1u << 4,      /* one reference that QEMU may report in parts */
    D_RMW = 1u << 5,       /* plain read-modify-write of one location */
    D_CALL = 1u << 6,
    D_RETURN = 1u << 7,
    D_IRET = 1u << 8,
    D_HALT = 1u << 9,      /* hlt, mwait */
    D_FENCE = 1u << 10,    /* drains write-combining buffers */
    D_TLB_FLUSH = 1u << 11,
    D_PREFETCH = 1u << 12,
    D_GS = 1u << 13,       /* gs prefix: the kernel's per-CPU data */
    D_PUSH_IMMEDIATE = 1u << 14, /* what an interrupt's entry stub begins with */
    D_TRIGGER = 1u << 15,  /* nopl imm32(%rax,%rax,1) */
    D_LOADS = 1u << 16,    /* it may load, and stores nothing; with D_STORES not set either, anything */
    D_STORES = 1u << 17,   /* it may store, and loads nothing */
    D_CONDITION = 1u << 18, /* a branch that a condition decides, its target in the instruction */
    D_COMPUTED = 1u << 19, /* a jump or a call to an address in a register or in memory */
};

/* `length` bytes of one whole instruction at `code` -> an OR of enum decoded. */
uint32_t decode(const uint8_t *code, size_t length);

/* The immediate of an instruction with D_TRIGGER. */
uint32_t decode_trigger(const uint8_t *code);

/* Whether a 64-bit operand is specified. */
int decode_rex_w(const uint8_t *code, size_t length);

#endif
