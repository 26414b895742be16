/* SPDX-License-Identifier: MIT OR Apache-2.0
 *
 * The interface between the TCG plugin (native/tap) and the consumer (crates/tap). Mirrored by crates/record/src/abi.rs
 * and crates/record/src/reference.rs; both sides assert sizes and offsets.
 *
 * One shared memory file holds, in this order:
 *   struct nm_control                         page 0
 *   chunk_count   * chunk_bytes               the ring: struct nm_chunk, then its records
 *   insn_capacity * struct nm_insn            one entry for each translated instruction that can be blamed
 *   ctx_capacity  * struct nm_ctx             calling-context tree
 * The file is sparse: capacities cost nothing until they are used.
 */
#ifndef NEARMISS_TAP_H
#define NEARMISS_TAP_H

#include <stddef.h>
#include <stdint.h>

#define NM_ABI_MAGIC 0x3130504154534d4eULL /* "NMSTAP01" */
#define NM_ABI_VERSION 10u
/* The variable in QEMU's environment that holds the version of its plugin interface. */
#define NM_QEMU_API_VARIABLE "NEARMISS_QEMU_API"
#define NM_MAX_VCPUS 64
#define NM_MAX_NODES 8
#define NM_ALLOCATORS 8
#define NM_CLEARING 3

/* ---- records ---------------------------------------------------------------------------------------------------
 * a: bits  0..47  virtual address (sign-extend bit 47) of the first byte touched inside this line
 *    bits 48..51  kind (enum nm_kind)
 *    bits 52..57  bytes touched inside this line, minus 1 (references are split at the filter's line size)
 *    bits 58..63  flags (NM_F_*)
 * b: bits  0..22  instruction id (index into the nm_insn table)
 *    bits 23..26  where the tap runs the first level, of a line that was not there: the way it takes; else 0
 *    bit  27      the same: the line that had this way was used again after another line of the set was
 *    bits 28..55  physical page number (offset in guest RAM / 4096)
 *    bits 56..63  instructions this vCPU executed since its previous record, at most 255; the rest is carried over
 */
struct nm_record {
    uint64_t a, b;
};

enum nm_kind {
    NM_LOAD = 0,
    NM_STORE = 1,
    NM_ATOMIC = 2,   /* locked read-modify-write, or xchg with memory: one record */
    NM_NT_STORE = 3, /* non-temporal store */
    NM_FETCH = 4,    /* instruction fetch: execution enters a line */
    NM_CONTROL = 15, /* bits 52..57 = enum nm_control_kind, 0..47 = argument, 58..63 = small argument; b = value;
                        payload records may follow, always in the same chunk */
};

#define NM_F_CONT 1u      /* second half of a reference that straddles two lines: not a reference of its own */
#define NM_F_FIRST_HIT 2u /* with NM_F_CONT: the first half was dropped by the filter (it hit); without it, the first
                             half is this vCPU's previous record */
#define NM_F_KERNEL 4u    /* executed in kernel mode */
#define NM_F_RMW 8u       /* store half of a plain read-modify-write (cachegrind counts the pair as one read) */

enum nm_control_kind {
    NM_C_SWITCH = 1,  /* this vCPU now runs another task. arg = its task_struct (low 48 bits), b = pid | tgid << 32.
                         payload: {mm, outgoing task_struct}, comm[16], struct nm_usage of the outgoing task (3 records) */
    NM_C_MAPS = 2,    /* new bytes of this vCPU's perf ring (PERF_RECORD_MMAP2, COMM, FORK, EXIT).
                         b = length; payload = the bytes, zero padded to 16 */
    NM_C_MARK = 3,    /* a marker ran. arg = its number; below 16: enum nm_mark. payload: struct nm_usage of the
                         running task (3 records) */
    NM_C_CONTEXT = 4, /* this vCPU's records from here on have calling context `arg`; sent only ahead of such a record */
    NM_C_SHARE = 5,   /* a line passes from the vCPU that had it to this record's. arg = physical address >>
                         filter_line_log2, small argument = the vCPU that had it, b = mask of the bytes that vCPU wrote
                         while it had the line (bit = byte in the line) */
    NM_C_HEAP = 6,    /* arg = enum nm_heap_op; payload: {address, size}, {old address, alignment} */
    NM_C_HALT = 7,    /* this vCPU halts until an interrupt */
    NM_C_FENCE = 8,   /* sfence, mfence or another fence, while write-combining buffers may hold data */
    NM_C_IRQ = 9,     /* arg 1: enters an interrupt handler (b = enum nm_irq); arg 0: leaves it */
    NM_C_CODE = 10,   /* code that may run from here on, once for each translation of other code. arg = virtual address
                         (low 48 bits) of a block's first byte, b = length; payload = the bytes, zero padded to 16:
                         uint64_t physical address or ~0; uint32_t n; n times {uint16_t offset, uint32_t instruction id},
                         offsets ascending; the block's machine code */
    NM_C_BRANCH = 11, /* a branch that a core would have predicted wrongly. arg = its instruction id, small argument = NM_B_*,
                         b = instructions that this vCPU executed since its previous reference or
                         fetch, the branch included */
};

/* NM_MARK_PART: a pause is over. Calls and interrupts under way are not known, nor what ran meanwhile. */
enum nm_mark { NM_MARK_BEGIN = 1, NM_MARK_END = 2, NM_MARK_PART = 3 };
/* Events that open the window. From BEGIN until then tasks, maps, heap objects, marks and calling contexts are
 * followed, while references and instructions are neither sent nor counted. NM_FROM_NEAR_MARK: the guest runs as in a
 * pause until the mark, without calling contexts, and the window opens some instructions behind it; NM_FROM_CONSUMER
 * likewise, where the emulator can pause. */
enum nm_from {
    NM_FROM_BEGIN = 0,
    NM_FROM_MARK = 1,
    NM_FROM_CONSUMER = 2,
    NM_FROM_SYMBOL = 3,
    NM_FROM_NEAR_MARK = 4
};
#define NM_B_KERNEL 1u /* executed in kernel mode */
#define NM_B_TAKEN 2u  /* it did not go on behind itself */
enum nm_irq { NM_IRQ_TIMER = 1, NM_IRQ_OTHER = 2 };
enum nm_heap_op {
    NM_HEAP_ALLOC = 1,
    NM_HEAP_FREE = 2,
    NM_HEAP_REALLOC = 3,
    NM_HEAP_STACK = 4, /* a thread's stack */
    NM_HEAP_TRIM = 5,  /* freed memory goes back to the kernel */
    NM_HEAP_MANAGED = 6 /* memory that a language's runtime gives out and takes back unseen */
};

/* References that the filter dropped (they hit), and instructions executed, by one task since its last report. */
struct nm_usage {
    uint64_t user_instructions, kernel_instructions;
    uint64_t user_loads, kernel_loads;   /* dropped loads */
    uint64_t user_stores, kernel_stores; /* dropped stores; an atomic counts as one store */
};

/* ---- chunks ---------------------------------------------------------------------------------------------------- */
struct nm_chunk {
    uint64_t seq;          /* 0, 1, 2, ... : the recorded order of all chunks */
    uint64_t slice;        /* number of the vCPU slice this chunk belongs to; changes when another vCPU runs */
    uint32_t vcpu;
    uint32_t records;      /* nm_record entries that follow, payload included */
    uint64_t instructions; /* executed by this vCPU up to the end of this chunk, since BEGIN */
    uint32_t context;      /* calling context in force at the chunk's start */
    uint32_t flags;        /* NM_CHUNK_* */
    uint64_t task;         /* task_struct in force at the chunk's start */
    uint64_t reserved[2];
};
#define NM_CHUNK_LAST 1u /* the window is closed: nothing follows */

/* ---- instructions ---------------------------------------------------------------------------------------------- */
#define NM_I_KERNEL 1u
#define NM_I_CALL 2u
#define NM_I_RET 4u
#define NM_I_ATOMIC 8u
#define NM_I_NT 16u
#define NM_I_PREFETCH 32u
#define NM_I_RMW 64u /* plain read-modify-write: its store_hits are store halves, as NM_F_RMW */
/* The first instruction of a line: bytes of its run in that line, and in the next one if it straddles them. */
#define NM_I_FETCHED_SHIFT 16
#define NM_I_FETCHED_SECOND_SHIFT 24
#define NM_I_FETCHED_MASK 127u

struct nm_insn {
    uint64_t vaddr;
    uint64_t paddr;      /* physical address of its first byte, or ~0 when unknown */
    uint32_t flags;      /* NM_I_* */
    uint32_t run;        /* instructions from here to the end of its line or block: what one execution adds to instructions */
    uint64_t task;       /* task_struct that ran when it was translated: determines the mappings that name it */
    uint64_t executions; /* counted where `run` != 0 (the first instruction of each line of a block), and for wide accesses */
    uint64_t load_hits;  /* loads dropped by the filter */
    uint64_t store_hits; /* stores dropped by the filter */
    uint64_t cont_hits;  /* second halves dropped by the filter */
};

struct nm_ctx {
    uint32_t parent; /* context id; 0 is the root */
    uint32_t call;   /* instruction id of the call */
    uint64_t slot;   /* address that the call stored its return address at, the first time */
};

/* ---- control page ----------------------------------------------------------------------------------------------
 * "consumer" and "plugin" name the writer of a field. Configuration is written before QEMU starts; kernel facts before
 * the guest executes the BEGIN trigger (the agent waits for the host's go-ahead). */
struct nm_control {
    /* consumer, before start */
    uint64_t magic;
    uint32_t version;
    uint32_t vcpus;
    uint32_t chunk_bytes; /* header included */
    uint32_t chunk_count;
    uint32_t insn_capacity;
    uint32_t ctx_capacity;
    uint64_t chunks_offset, insns_offset, ctxs_offset;
    uint32_t filter_line_log2;
    uint32_t filter_index_low;  /* lowest address bit of the filter's index */
    uint32_t filter_index_bits; /* 0: the one-line filter */
    uint32_t only_user;         /* 1: kernel accesses, fetches and contexts are not recorded */
    uint32_t clear_on_slice;    /* 1: clear a vCPU's filter when another vCPU ran in between (its L1 is shared) */
    uint32_t call_contexts;     /* 1: keep the calling-context tree */
    uint32_t fetches;           /* 1: record instruction fetches */
    uint32_t nodes;
    uint64_t node_bytes[NM_MAX_NODES];

    /* consumer, before BEGIN: facts about the guest's kernel */
    uint32_t facts_ready; /* release store, then futex wake */
    uint32_t task_pid_offset, task_tgid_offset, task_comm_offset, task_mm_offset;
    uint32_t reserved0;
    uint64_t direct_map_base;                 /* virtual address of physical 0 */
    uint64_t current_task_paddr[NM_MAX_VCPUS]; /* where each CPU keeps its current task_struct pointer */
    uint64_t timer_entry_vaddr;               /* asm_sysvec_apic_timer_interrupt */
    uint64_t irq_text_start, irq_text_end;    /* entry points of the other interrupts */
    uint64_t perf_head_paddr[NM_MAX_VCPUS];   /* data_head of each CPU's perf ring; 0: none */
    uint64_t perf_ring_bytes;                 /* size of a ring's data area, a power of two */
    uint64_t perf_pages_offset[NM_MAX_VCPUS]; /* offset in this file of an array of uint64_t: physical addresses of the data pages */

    /* the window inside the command: consumer, before start, unless noted */
    uint32_t from_kind;        /* enum nm_from */
    uint32_t until_mark;       /* closes the window, as NM_C_MARK numbers it; 0: none does */
    uint64_t from_value;       /* NM_FROM_MARK, NM_FROM_NEAR_MARK: the mark, as NM_C_MARK numbers it; NM_FROM_SYMBOL: the symbol's virtual
                                  address, 0 while unknown, written while running */
    uint64_t for_instructions; /* closes the window once so many were executed in it; 0: no limit */
    uint32_t start;            /* consumer, while running: 1 opens the window now (NM_FROM_CONSUMER) */
    uint32_t opened;           /* plugin: 1 once the window opened */
    uint64_t from_code;        /* NM_FROM_SYMBOL: the first 8 bytes of the symbol's code */

    /* consumer, before start: the first level that the tap is to run, in the filter's sets; 0 ways: none */
    uint32_t first_level_data_ways, first_level_fetch_ways;
    uint32_t first_level_data_tree, first_level_fetch_tree; /* 1: ways go by a tree of bits; 0: by least recent use */
    uint32_t first_level_misses_only; /* 1: of the level of instructions nothing but misses; 0: a use now and then too, and
                                         of a line that goes whether it was used again */
    /* consumer, before start: what a replay may change (filter.c); not together with a first level */
    uint32_t ordered_stores; /* 1: every store is sent, and what was stored to is forgotten */
    uint32_t by_task;        /* 1: a vCPU's filter is cleared at each switch of tasks, lines are shared by tasks, and
                                NM_C_SHARE is not sent: no byte is written unseen */
    uint32_t every_access;   /* 1: the filter drops no access to data; not together with a first level */
    uint32_t managed_heaps;  /* 1: the consumer looks for `allocators` */
    uint32_t branches;       /* 1: branches are predicted, and NM_C_BRANCH is sent */

    /* consumer, before BEGIN: entries of the kernel's functions that clear a page; 0: none */
    uint64_t clearing[NM_CLEARING];

    /* plugin */
    _Alignas(64) uint64_t published; /* chunks filled, ever; release store, then futex wake on the low word */
    uint32_t consumer_waits;         /* consumer sets it before it sleeps on `published` */
    uint32_t insns;                  /* entries of nm_insn in use */
    uint32_t ctxs;                   /* entries of nm_ctx in use; 0 is the root */
    uint32_t state;                  /* enum nm_state */
    uint64_t prefetches, io_accesses;
    uint64_t lost_before_share; /* times that a line became shared: what its owner's filter dropped until then was not sent */
    uint64_t skipped;
    char error[256]; /* why the plugin gave up, or empty */
    uint32_t opened_by; /* the process that executed BEGIN */
    uint32_t closed_by; /* the process that executed END; 0 where something else closed the window */
    uint32_t paused;    /* 1: between two parts of the run */
    uint32_t changes;   /* between parts and pauses, where the plugin can time them itself; written last */
    uint64_t changed_ns; /* the guest's clock at the last change */
    uint64_t now_ns;     /* the guest's clock not long ago */
    uint64_t passed_ns[2]; /* of the guest's clock in parts, and in pauses, from the window's start to the last change */
    uint64_t cleared[2]; /* calls of `clearing` in parts, and in pauses, from the window's start on */

    /* consumer, while running */
    _Alignas(64) uint64_t consumed; /* chunks given back, ever; release store, then futex wake on the low word */
    uint32_t plugin_waits;          /* plugin sets it before it sleeps on `consumed` */
    uint32_t stop;                  /* 1: close the window now */
    uint32_t pause;                 /* 1: run without callbacks, inside the window, until this is 0 again; the plugin
                                       writes it too, where it ends parts and pauses itself */
    uint32_t follow;                /* 1: calls are followed in the next pause */
    uint64_t part_ns, pause_ns;     /* the next part and the next pause end after this time of the guest's clock; 0: when
                                       the consumer requests it */
    /* Functions of languages' runtimes that give out memory, as Go's runtime.mallocgc: the first ones have an address
     * and the first 8 bytes of code there. The address is written last. */
    struct nm_allocator {
        uint64_t address, code;
    } allocators[NM_ALLOCATORS];
};

enum nm_state {
    NM_STATE_BOOTING = 0,
    NM_STATE_RECORDING = 1,
    NM_STATE_CLOSED = 2,
    NM_STATE_FAILED = 3,
    NM_STATE_ATTENTIVE = 4, /* after BOOTING and `facts_ready`: triggers are seen from here on */
};

_Static_assert(sizeof(struct nm_record) == 16, "nm_record");
_Static_assert(sizeof(struct nm_usage) == 48, "nm_usage");
_Static_assert(sizeof(struct nm_chunk) == 64, "nm_chunk");
_Static_assert(sizeof(struct nm_insn) == 64, "nm_insn");
_Static_assert(sizeof(struct nm_ctx) == 16, "nm_ctx");
_Static_assert(offsetof(struct nm_control, from_kind) == 1752, "nm_control.from_kind");
_Static_assert(offsetof(struct nm_control, from_code) == 1784, "nm_control.from_code");
_Static_assert(offsetof(struct nm_control, first_level_data_ways) == 1792, "nm_control.first_level_data_ways");
_Static_assert(offsetof(struct nm_control, ordered_stores) == 1812, "nm_control.ordered_stores");
_Static_assert(offsetof(struct nm_control, published) == 1856, "nm_control.published");
_Static_assert(offsetof(struct nm_control, managed_heaps) == 1824, "nm_control.managed_heaps");
_Static_assert(offsetof(struct nm_control, clearing) == 1832, "nm_control.clearing");
_Static_assert(offsetof(struct nm_control, cleared) == 2216, "nm_control.cleared");
_Static_assert(offsetof(struct nm_control, allocators) == 2280, "nm_control.allocators");
_Static_assert(sizeof(struct nm_control) <= 4096, "nm_control fits a page");

#endif
