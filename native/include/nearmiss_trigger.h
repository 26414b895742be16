/* SPDX-License-Identifier: MIT OR Apache-2.0
 *
 * Triggers: instructions that do nothing anywhere, and that the tap recognises when it translates
 * them. Each is `nopl imm32(%rax,%rax,1)`, bytes 0f 1f 84 00 followed by the little-endian
 * immediate. The address it names is never formed.
 */
#ifndef NEARMISS_TRIGGER_H
#define NEARMISS_TRIGGER_H

/* Opens the window: executed by the command's process just before its execve. */
#define NEARMISS_TRIGGER_BEGIN 0x4e4d0001
/* Closes the window: executed by the agent once the command has been waited for. */
#define NEARMISS_TRIGGER_END 0x4e4d0002
/* An unnumbered mark. */
#define NEARMISS_TRIGGER_MARK 0x4e4d0003
/* The thread's work between these two is ours, not the program's. */
#define NEARMISS_TRIGGER_SKIP_ON 0x4e4d0004
#define NEARMISS_TRIGGER_SKIP_OFF 0x4e4d0005
/* A heap mailbox is full; the last store before this was to the mailbox's last word. */
#define NEARMISS_TRIGGER_HEAP 0x4e4d0006
/* Maps may have changed: read the perf rings. */
#define NEARMISS_TRIGGER_MAPS 0x4e4d0007
/* The numbered marks 0 to 4095 are NEARMISS_TRIGGER_MARK_BASE | number. */
#define NEARMISS_TRIGGER_MARK_BASE 0x4e4d1000
#define NEARMISS_TRIGGER_MARK_MASK 0x00000fff

#define NEARMISS_TRIGGER_BYTES_PREFIX 0x0f, 0x1f, 0x84, 0x00

#if defined(__x86_64__) && defined(__GNUC__)
/* `immediate` must be a constant. The memory clobber keeps stores on their side of the trigger. */
#define NEARMISS_TRIGGER(immediate)                                                                \
    __asm__ volatile(".byte 0x0f, 0x1f, 0x84, 0x00\n\t.long %c0" : : "i"(immediate) : "memory")
#else
#define NEARMISS_TRIGGER(immediate) ((void)0)
#endif

/* Filled by the heap shim, inside a skipped stretch, before NEARMISS_TRIGGER_HEAP. Aligned so that it lies in one page;
 * `sequence` is stored last, with one store: the tap finds the mailbox by that store. */
struct nearmiss_mailbox {
    unsigned long long operation; /* enum nm_heap_op of nearmiss_tap.h */
    unsigned long long address, size;
    unsigned long long old_address, alignment;
    unsigned long long stack; /* where the return address of the function that fills this lies */
    unsigned long long proof; /* address of a word of the stack that equals `sequence` */
    unsigned long long sequence;
} __attribute__((aligned(64)));

#endif
