/* SPDX-License-Identifier: GPL-2.0-or-later
 *
 * Shared by the parts of the tap: the state of a vCPU, the configuration, and one line about each part.
 */
#ifndef NEARMISS_TAP_INTERNAL_H
#define NEARMISS_TAP_INTERNAL_H

#include "nearmiss_tap.h"
#include "qemu_api.h"

#define likely(x) __builtin_expect(!!(x), 1)
#define unlikely(x) __builtin_expect(!!(x), 0)

#pragma GCC visibility push(hidden)

enum { FILTER_SETS_MAX = 1024, TLB_ENTRIES = 4096, RAM_LINE_LOG2_MAX = 6, SOLO_LINE_LOG2 = 6 };
enum { FIRST_LEVEL_SETS_MAX = 64, FIRST_LEVEL_WAYS_MAX = 16 };
/* Limits of a block that QEMU translates at once, and the largest payload that code.c sends for one. */
enum { BLOCK_INSNS_MAX = 1024, INSN_BYTES_MAX = 15, CODE_PAYLOAD_MAX = 12 + BLOCK_INSNS_MAX * (6 + INSN_BYTES_MAX) };

/* An address that no access is near: not canonical. */
#define NOWHERE 0x4000000000000000ULL
#define NO_PAGE (~0ULL)
#define NO_LINE (~0ULL)

/* One set of the data filter: the line this set touched last. */
struct filter_entry {
    uint64_t load_from;  /* virtual address of the line, or NOWHERE */
    uint64_t store_from; /* the same, once a store to it was sent */
    uint64_t written;    /* bytes written since the line entered */
    uint64_t line;       /* offset in guest RAM >> line_log2 */
};

/* A tree of bits over the ways of a set. */
struct tree {
    uint64_t keep[FIRST_LEVEL_WAYS_MAX], point[FIRST_LEVEL_WAYS_MAX]; /* by way used */
    uint32_t ways; /* 0: order is by time of use */
};

/* A set of the first level of data, where the tap runs it. */
struct first_level_set {
    uint64_t order;      /* of its ways, by use: digits, or the bits of a tree */
    uint16_t stored;     /* by way, a bit each: a store was sent */
    uint16_t sent;       /* the same: a use was sent lately */
    uint16_t again;      /* the same: it was used again after another line of the set was */
    uint8_t newest, used; /* way used last; ways in use */
    uint32_t pages[FIRST_LEVEL_WAYS_MAX]; /* by way: of its line; all sets lie inside a page */
} __attribute__((aligned(64)));

struct first_level {
    struct first_level_set sets[FIRST_LEVEL_SETS_MAX];
    struct tree tree;
    uint32_t ways;
    uint32_t misses, resend_after; /* misses since `sent` was cleared; how many until it is again */
};

/* Sets of the first level of instructions. */
struct code_line;
struct code_set {
    struct code_line *ways[FIRST_LEVEL_WAYS_MAX]; /* NULL: empty */
    struct code_line *newest;                     /* used last, or NULL */
    uint64_t order;                               /* the bits of a tree */
};

struct code_level {
    struct code_set sets[FIRST_LEVEL_SETS_MAX];
    struct tree tree;
    uint32_t ways;
    uint32_t misses, resend_after; /* as in first_level */
};

struct tlb_entry {
    uint64_t tag;  /* virtual page | generation << 36 */
    uint64_t page; /* offset in guest RAM >> 12 */
};

/* Why a vCPU's next block or slow access needs more than the usual. */
enum attention {
    ATTEND_NOT_CURRENT = 1, /* another vCPU ran since */
    ATTEND_SKIP = 2,        /* the running task requested not to be recorded */
    ATTEND_CLOSED = 4,      /* the window is closed, or was never opened */
    ATTEND_STOP = 8,        /* the consumer requests that the window close */
    ATTEND_PENDING = 16,    /* the command runs, the window has not opened yet */
    ATTEND_START = 32,      /* the consumer requests that it open */
    ATTEND_REFILL = 64,     /* QEMU's translation cache is to be flushed */
    ATTEND_PAUSED = 128,    /* between two parts of the run */
};

enum { USER = 0, KERNEL = 1 };

struct branch;
struct call;
struct task;

struct vcpu {
    uint32_t index;
    uint32_t attention;
    /* by USER, KERNEL; since the window opened */
    uint64_t loads[2], stores[2]; /* dropped by the filter */
    uint64_t instructions[2];
    uint64_t instructions_limit; /* of both together; then an epoch, a slice or the window may be over */
    uint64_t slice_begin;        /* instructions at its begin */
    struct filter_entry data[FILTER_SETS_MAX];
    uint64_t fetched[FILTER_SETS_MAX]; /* physical line of the last fetch of each set */

    struct first_level first_data;
    struct code_level code;

    /* what the slow path needs */
    struct tlb_entry tlb[TLB_ENTRIES];
    uint64_t tlb_generation;
    uint32_t pages; /* filled since its last flush */
    uint32_t epoch; /* in which the filter was forgotten last */
    uint64_t watched_line; /* line that holds this CPU's current task */
    struct task *task;
    struct nm_usage reported; /* totals at the last report */
    uint64_t instructions_reported;
    uint64_t *perf_words; /* data_head and data_tail of this CPU's perf ring, in guest RAM; NULL: none */
    uint64_t perf_head;   /* bytes of it sent so far */
    uint64_t fetch_page; /* page of the last fetch that was sent */
    uint64_t mail_store, mail_store_page; /* in a pause: the last store into a heap mailbox; 0: none */
    const struct branch *branch; /* that has begun, and whose way the next block will show; NULL: none */
    struct call *allocates; /* between the entry of a runtime's allocator and its first instruction */
    int nt_pending;      /* write-combining buffers may hold data */
    struct {
        const struct nm_insn *insn;
        uint64_t execution, end;
        struct nm_record *record; /* the last record, while it may still grow */
        int store;
    } wide;
    struct {
        struct filter_entry data[FILTER_SETS_MAX];
        int valid;
    } aside; /* the filter, while the task is skipped */

    struct nm_record *records; /* the chunk being filled; its head is apart */
    uint32_t used;
    struct nm_chunk chunk;
    uint32_t context; /* in force for the consumer */
    struct {
        uint64_t next_ns, pause_ns; /* when, and how long after the last time */
        uint32_t modes;             /* its parts that the program's pages went by since, a bit each */
        uint32_t places;            /* its size, as far as the tap has seen to it */
        uint32_t pages_most;        /* most of `pages` since the last time */
        uint32_t pages_limit;       /* more of them call for a larger one at once */
    } refill;                       /* of QEMU's translation cache */
} __attribute__((aligned(4096)));

extern struct vcpu tap_vcpus[NM_MAX_VCPUS];

struct tap {
    qemu_plugin_id_t id;
    void (*on_translation)(struct qemu_plugin_tb *);
    unsigned char *file; /* the shared memory file */
    struct nm_control *control;
    struct nm_insn *insns;
    struct nm_ctx *ctxs;
    uint32_t chunk_capacity; /* records */
    uint32_t line_log2, index_low, index_mask, line_bytes;
    uint32_t vcpus;
    int sharing;  /* more than one vCPU */
    uint32_t epoch; /* of sharing.c */
    int contexts; /* call_contexts */
    int ordered;  /* ordered_stores */
    int by_task;  /* the control page's */
    int every;    /* every_access */
    int misses_only; /* of the level of instructions nothing else is sent */
    int first_data, first_fetch; /* the tap runs the machine's first level of data, of instructions; only where solo */
    uint8_t size_log2[16]; /* of an access, by bits 4 to 7 of its meminfo */
    uint64_t room[16];     /* where in a line of 64 bytes an access of that size may begin, at most */
    uint64_t solo_mask; /* an address >> 1, so masked: where the entry of its set begins in the data filter */
    int solo;     /* one vCPU, lines of 64 bytes, the index right above the line's offset: shorter callbacks */
    struct vcpu *executed; /* on which a program was executed last; NULL once its maps were sent */
};
extern struct tap tap;

/* Two translated instructions with an equal identity are the same. */
struct insn_identity {
    uint64_t vaddr, paddr;
    uint8_t code[INSN_BYTES_MAX];
    uint8_t size;
    uint32_t run;                     /* as in nm_insn */
    uint16_t fetched, fetched_second; /* as NM_I_FETCHED_SHIFT */
};

extern struct insn_identity *tap_identities; /* by instruction id */

/* Whether a fence drains anything: in the core's own buffers, or in those of a replay that sends stores there. */
static inline int fence_matters(const struct vcpu *v) { return v->nt_pending || tap.ordered; }

static inline uint32_t insn_id(const struct nm_insn *insn) { return (uint32_t)(insn - tap.insns); }

static inline struct filter_entry *filter_set(struct vcpu *v, uint64_t vaddr)
{
    return &v->data[(vaddr >> tap.index_low) & tap.index_mask];
}

/* plugin.c: arguments, the shared file, start */
void tap_fail(const char *why, ...) __attribute__((format(printf, 1, 2)));

/* translate.c: decides at translation what to call at execution */
void translate_block(struct qemu_plugin_tb *);
void translate_calls(struct qemu_plugin_tb *); /* what is followed until the window opens, if calls are */
int translate_init(void);

/* insns.c: the entry of an instruction; NULL when the table is full, which ends the recording */
struct nm_insn *insns_entry(const struct insn_identity *, int *is_new);

/* branches.c: branches that a core would predict wrongly */
int branches_init(void);
void branches_register_block(struct qemu_plugin_tb *, uint64_t vaddr);
void branches_register(struct qemu_plugin_insn *, const struct nm_insn *, uint32_t decoded, const uint8_t *code,
                       size_t size);

/* code.c: the code of translated blocks, instruction by instruction; those without an entry have NULL */
void code_begin(uint64_t vaddr, uint64_t paddr);
void code_insn(const uint8_t *bytes, size_t count, const struct nm_insn *);
void code_end(void);
void code_open(struct vcpu *); /* the window opens: sends what was translated before */

/* access.c: the callbacks of memory accesses */
enum access {
    ACCESS_PLAIN, ACCESS_LOAD, ACCESS_STORE, /* either, or one alone */
    ACCESS_CALL, ACCESS_RETURN, /* the order matters to access_register */
    ACCESS_WIDE, ACCESS_ATOMIC, ACCESS_PAIR_8, ACCESS_PAIR_16, ACCESS_NT,
};
int access_init(void);
void access_register(struct qemu_plugin_insn *, struct nm_insn *, enum access, int kernel);
void access_watch_current_task(struct qemu_plugin_insn *);

/* reference.c: an access the filter did not drop */
void reference(struct vcpu *, struct nm_insn *, qemu_plugin_meminfo_t, uint64_t vaddr, unsigned size, enum nm_kind);
/* One reference reported in parts; `execution` distinguishes the executions of an instruction. */
void reference_part(struct vcpu *, struct nm_insn *, qemu_plugin_meminfo_t, uint64_t vaddr, unsigned size,
                    enum nm_kind, int store);

/* fetch.c: execution enters a line */
void fetch_register(struct qemu_plugin_tb *, size_t index, struct nm_insn *, int kernel, int second_line);

/* filter.c */
void filter_clear(struct vcpu *);                      /* forget the data filter, keeping what was written */
void filter_displace(struct filter_entry *);           /* forget one set */
uint64_t filter_take(struct vcpu *, uint64_t line);    /* forget a line; the bytes written to it */
void filter_set_aside(struct vcpu *);
void filter_bring_back(struct vcpu *);
void fetch_clear(struct vcpu *);

/* first_level.c: the machine's first level of data, where the tap runs it */
int first_level_init(void);
int first_level_refused(uint32_t ways, uint32_t tree); /* 1 and a message if the tap cannot run such a level */
uint32_t first_level_resend_after(uint32_t ways);
void first_level_take(struct first_level *, uint64_t vaddr, uint64_t page); /* the caches give the line up */

/* code_line.c: the same of instructions */
int code_line_init(void);
void code_line_take(struct code_level *, uint64_t line);

/* softtlb.c */
uint64_t softtlb_fill(struct vcpu *, qemu_plugin_meminfo_t, uint64_t vaddr);
void softtlb_flush(struct vcpu *);
static inline uint64_t softtlb_tag(const struct vcpu *v, uint64_t vaddr)
{
    return (vaddr >> 12 & 0xfffffffffULL) | v->tlb_generation << 36;
}
/* The page of an access that has just happened, or NO_PAGE for a device. */
static inline uint64_t softtlb_page(struct vcpu *v, qemu_plugin_meminfo_t info, uint64_t vaddr)
{
    const struct tlb_entry *t = &v->tlb[(vaddr >> 12) % TLB_ENTRIES];
    return likely(t->tag == softtlb_tag(v, vaddr)) ? t->page : softtlb_fill(v, info, vaddr);
}
/* The page if it is known, else NO_PAGE. */
static inline uint64_t softtlb_known(struct vcpu *v, uint64_t vaddr)
{
    const struct tlb_entry *t = &v->tlb[(vaddr >> 12) % TLB_ENTRIES];
    return t->tag == softtlb_tag(v, vaddr) ? t->page : NO_PAGE;
}

/* refill.c: room in QEMU's own translation cache */
void refill_look(struct vcpu *);  /* now and then; may set ATTEND_REFILL */
void refill_pages(struct vcpu *); /* the program uses more pages than were reckoned with; sets it */
void refill(struct vcpu *);       /* between two instructions */

/* ram.c: guest RAM, mapped in this process by QEMU itself */
int ram_argument(unsigned node, int fd);
int ram_init(void);
uint64_t ram_of_host(const void *);            /* offset in guest RAM, or ~0 */
uint64_t ram_of_physical(uint64_t physical);   /* offset in guest RAM, or ~0 */
void *ram_at(uint64_t offset, uint64_t bytes); /* NULL when not all of it is guest RAM */
uint64_t ram_bytes(void);

/* sharing.c: which lines the filters of several vCPUs may remember, and which must always be sent */
int sharing_init(void);
/* Notes an access; 1 when the line must always be sent. Takes it from other vCPUs' filters, and emits NM_C_SHARE. */
int sharing_touch(struct vcpu *, uint64_t line, int store);
/* Takes the instructions of all vCPUs so far; returns how many are left in the epoch. */
uint64_t sharing_enter_epoch(struct vcpu *, uint64_t instructions);
void sharing_keep(uint64_t line, uint64_t written); /* remembers bytes written, of a displaced filter entry */

/* ring.c: records to the consumer */
int ring_init(void);
struct nm_record *ring_reserve(struct vcpu *, uint32_t records); /* room in one chunk; count `used` up oneself */
void ring_control(struct vcpu *, enum nm_control_kind, uint64_t argument, unsigned small, uint64_t value,
                  const void *payload, uint32_t payload_bytes);
void ring_publish(struct vcpu *, uint32_t flags);
void ring_wake(void);
void ring_await_facts(void); /* facts of the guest's kernel, which the consumer writes once it has booted */
void ring_await_consumer(void); /* until it has seen all that was published, for a while */

/* contexts.c: shadow stacks and the calling-context tree */
struct frame {
    uint64_t sp;
    uint32_t context;
};
struct shadow_stack {
    struct frame *frames;
    uint32_t depth, capacity;
};
void contexts_call(struct vcpu *, const struct nm_insn *, int kernel, uint64_t sp);
void contexts_send_user(struct vcpu *); /* where a heap object or a mapping is sent */
void contexts_send(struct vcpu *, uint32_t context);
/* The context of the call that stored its return address at `sp` just now, without frames from `end` up, which are of
 * another stack; 0 where no such call was seen. */
uint32_t contexts_on_stack(const struct vcpu *, uint64_t sp, uint64_t end);
/* The context of a call, which stores its return address at `slot`, under the caller's. */
uint32_t contexts_child(uint32_t parent, uint32_t call, uint64_t slot);
void contexts_return(struct vcpu *, int kernel, uint64_t sp);
void contexts_forget_user(struct task *);
static inline uint32_t contexts_now(const struct shadow_stack *s)
{
    return s->depth ? s->frames[s->depth - 1].context : 0;
}

/* callers.c: the calls under way where the heap shim reports; its own return address lies at `slot` */
void callers_learn(struct vcpu *, uint64_t slot);        /* from the shadow stack */
/* The context, from the stack's words alone; 0: not known. */
struct nearmiss_mailbox;
uint32_t callers_on_stack(struct vcpu *, const struct nearmiss_mailbox *);

/* tasks.c: which task runs */
struct task {
    struct task *next;
    uint64_t address, mm;
    uint32_t pid;
    uint32_t number; /* of tasks so far */
    uint32_t irq_depth;
    int skip;            /* how many times it requested to be skipped */
    uint64_t last_store; /* of user mode, while skipped */
    uint64_t last_store_page;
    uint64_t mailbox, mailbox_page, mail_sequence; /* of its last heap object; 0: none yet */
    uint64_t stack_at, stack_page; /* its stack's page where the heap shim reported last, in a pause */
    uint64_t allocates_bytes; /* in a call of a runtime's allocator that has not returned; 0: in none */
    uint32_t allocates_in;    /* the call's context */
    struct shadow_stack stacks[2];
    struct shadow_stack left; /* frames of user mode that a call left without returns: its stack may be another one */
};
void tasks_address_space(struct vcpu *); /* the TLB was flushed: an exec? */
void tasks_enter(struct vcpu *); /* reads the current task; emits NM_C_SWITCH */
uint32_t tasks_pid(const struct vcpu *); /* of the current task */
void tasks_stored(struct vcpu *, uint64_t offset);                  /* a store touched the watched line */
void tasks_skip(struct vcpu *, int on); /* may be nested */
int tasks_changed(const struct vcpu *); /* another task runs than the last one that was sent */
void tasks_begin_part(int followed); /* forgets interrupts of all tasks and, unless they were followed, calls */
struct nm_usage tasks_usage(struct vcpu *);                        /* since the last report */

/* maps.c: the guest's perf rings */
void maps_open(struct vcpu *);
void maps_poll(struct vcpu *);

/* heap.c: the mailbox of the heap shim */
void heap_mail(struct vcpu *);
void heap_watch_mail(struct qemu_plugin_insn *); /* in a pause: the store that fills the mailbox */

/* allocators.c: functions of a language's runtime that give out memory; before the block's other callbacks */
void allocators_register(struct qemu_plugin_tb *);

/* cleared.c: pages that the kernel clears; those ahead of the window are forgotten */
void cleared_register(struct qemu_plugin_tb *, int is_paused);
void cleared_begin(void);

/* sites.c: notes whether an object has a call site; returns whether one that had may have lain there */
int sites_change(uint64_t mm, uint64_t address, uint64_t size, int has_site);

/* irq.c */
void irq_register(struct qemu_plugin_insn *, uint32_t decoded, uint64_t vaddr);

/* window.c: triggers, begin, end, slices */
void window_trigger_register(struct qemu_plugin_insn *, uint32_t immediate);
int window_init(void);
int window_attend(struct vcpu *, int kernel); /* 0: do not record */
int window_attend_run(struct vcpu *, int kernel); /* at the entry of a line of code */
int window_spent(struct vcpu *); /* this vCPU reached its limit: 1 if that closed the window */
int window_awaits_maps(void); /* a symbol opens it, and the maps must still give its address */
void window_symbol_register(struct qemu_plugin_tb *, size_t index, uint64_t vaddr, const uint8_t *code, size_t size);
int window_is_open(void);
struct vcpu *window_vcpu(void); /* the vCPU that runs this slice; NULL before the window opens */
void window_fail(void);
void window_close_now(void); /* as the vCPU that has the slice */
void window_start_now(void); /* the same */
void window_mark(uint64_t number); /* the same */
void window_enter_slice(struct vcpu *); /* this vCPU runs */
void window_look_for_triggers(struct qemu_plugin_tb *); /* the only callbacks outside the window and in a pause */

/* parts.c: pauses inside the window */
void parts_begin_first(void); /* the window opened, and is recorded */
void parts_look(int pending, int starts); /* handles the consumer's requests; on a thread of its own, now and then */
void parts_begin_paused(void);
void parts_start(void); /* the window opens soon, and the guest leaves the pause */
int parts_close(void); /* closes the window soon, also of a guest that idles; 0 where this QEMU cannot */
int parts_see_no_references(const struct vcpu *); /* in a pause */
void parts_follow(struct vcpu *); /* a trigger in a pause: which task runs */
static inline int attend(struct vcpu *v, int kernel)
{
    return likely(v->attention == 0) || window_attend(v, kernel);
}

#pragma GCC visibility pop

#endif
