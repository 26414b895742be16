/* SPDX-License-Identifier: GPL-2.0-or-later
 *
 * The plugin's filters without QEMU: reads references, prints the records that the plugin sends for them. One command a
 * line, numbers in hexadecimal; every answer ends with a line `end`.
 *
 *     new VCPUS LINE_LOG2 INDEX_LOW INDEX_BITS MODES   begin anew; modes: 1 clear_on_slice, 2 ordered_stores, 4 by_task,
 *                                                    8 every_access
 *     slice VCPU TASK                                  this vCPU runs from here on, on it this task
 *     run INSTRUCTIONS                                 it executes so many
 *     ref KIND ADDRESS SIZE INSN                       it touches memory; virtual address = physical address
 *     wide ADDRESS PARTS INSN                          one store, reported in parts of 8 bytes
 *     context CONTEXT                                  what follows has this calling context
 *     fence                                            it executes a fence
 *     send                                             print what was sent since: two words a record
 */
#include "../fetch.c"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct tap tap;
struct vcpu tap_vcpus[NM_MAX_VCPUS];
struct insn_identity *tap_identities;

static struct nm_control control;
enum { INSNS = 256, TASKS = 64 };
enum { CLEAR_ON_SLICE = 1, ORDERED_STORES = 2, BY_TASK = 4, EVERY_ACCESS = 8 };
static struct nm_insn insns[INSNS];
static struct task tasks[TASKS], idle[NM_MAX_VCPUS];
static struct nm_record sent[1 << 20];

uint64_t softtlb_fill(struct vcpu *v, qemu_plugin_meminfo_t info, uint64_t vaddr)
{
    (void)v, (void)info;
    return vaddr >> 12;
}

struct nm_record *ring_reserve(struct vcpu *v, uint32_t records)
{
    if (v->used + records > sizeof sent / sizeof *sent)
        abort();
    return v->records + v->used;
}

void ring_control(struct vcpu *v, enum nm_control_kind kind, uint64_t argument, unsigned small, uint64_t value,
                  const void *payload, uint32_t payload_bytes)
{
    (void)payload;
    if (payload_bytes)
        abort();
    *ring_reserve(v, 1) = (struct nm_record){
        argument | (uint64_t)NM_CONTROL << 48 | (uint64_t)kind << 52 | (uint64_t)small << 58, value};
    v->used++;
}

uint64_t ram_bytes(void) { return 32 << 20; }
void tap_fail(const char *why, ...) { fprintf(stderr, "%s\n", why), exit(1); }
void tasks_stored(struct vcpu *v, uint64_t offset) { (void)v, (void)offset; }
void maps_poll(struct vcpu *v) { (void)v; }
int window_attend_run(struct vcpu *v, int kernel) { return (void)v, kernel, 1; }
int window_spent(struct vcpu *v) { return (void)v, 0; }
void qemu_plugin_register_vcpu_tb_exec_cb(struct qemu_plugin_tb *tb, qemu_plugin_exec_cb_t callback,
                                          enum qemu_plugin_cb_flags flags, void *data)
{
    (void)tb, (void)callback, (void)flags, (void)data;
}
void qemu_plugin_register_vcpu_insn_exec_cb(struct qemu_plugin_insn *at, qemu_plugin_exec_cb_t callback,
                                            enum qemu_plugin_cb_flags flags, void *data)
{
    (void)at, (void)callback, (void)flags, (void)data;
}
struct qemu_plugin_insn *qemu_plugin_tb_get_insn(const struct qemu_plugin_tb *tb, size_t i)
{
    return (void)tb, (void)i, NULL;
}

static void begin(uint32_t vcpus, uint32_t line_log2, uint32_t index_low, uint32_t index_bits, uint32_t modes)
{
    control = (struct nm_control){.fetches = 1, .clear_on_slice = modes & CLEAR_ON_SLICE};
    tap = (struct tap){.control = &control, .insns = insns, .chunk_capacity = UINT32_MAX, .line_log2 = line_log2,
                       .line_bytes = 1u << line_log2, .index_low = index_low, .index_mask = (1u << index_bits) - 1,
                       .vcpus = vcpus, .sharing = vcpus > 1 || modes & BY_TASK,
                       .ordered = (modes & ORDERED_STORES) != 0, .by_task = (modes & BY_TASK) != 0,
                       .every = (modes & EVERY_ACCESS) != 0};
    if (sharing_init())
        exit(1);
    for (uint32_t i = 0; i < vcpus; i++) {
        struct vcpu *v = &tap_vcpus[i];
        memset(v, 0, sizeof *v);
        *v = (struct vcpu){.index = i, .instructions_limit = ~0ULL, .tlb_generation = 1, .watched_line = NO_LINE,
                           .records = sent};
        for (uint32_t s = 0; s < FILTER_SETS_MAX; s++)
            v->data[s] = (struct filter_entry){NOWHERE, NOWHERE, 0, NO_LINE};
        fetch_clear(v);
    }
}

static void touch(struct vcpu *v, enum nm_kind kind, uint64_t address, unsigned size, struct nm_insn *insn)
{
    if (kind == NM_FETCH) {
        *insn = (struct nm_insn){.vaddr = address, .paddr = address, .flags = size << NM_I_FETCHED_SHIFT};
        one_line(v->index, insn, USER, 0);
    } else {
        reference(v, insn, 0, address, size, kind);
    }
}

static void store_wide(struct vcpu *v, uint64_t address, unsigned parts, struct nm_insn *insn)
{
    insn->executions++;
    for (unsigned i = 0; i < parts; i++)
        reference_part(v, insn, 0, address + 8 * i, 8, NM_STORE, 1);
}

/* As tasks.c does it. */
static void run_task(struct vcpu *v, struct task *task)
{
    if (v->task != task && tap.by_task) {
        filter_clear(v);
        fetch_clear(v);
    }
    v->task = task;
}

/* A task that moves leaves the vCPU where it was to the idle task there. */
static void enter_slice(struct vcpu *v, uint32_t number)
{
    struct task *task = &tasks[number % TASKS];
    task->number = number;
    for (uint32_t i = 0; i < tap.vcpus; i++)
        if (tap_vcpus[i].task == task && i != v->index)
            run_task(&tap_vcpus[i], &idle[i]);
    run_task(v, task);
}

/* As in window.c: the instructions of all vCPUs give the epoch. */
static void look_at_epoch(struct vcpu *v)
{
    uint64_t sum = 0;
    for (uint32_t i = 0; i < tap.vcpus; i++)
        sum += tap_vcpus[i].instructions[USER];
    sharing_enter_epoch(v, sum);
}

static struct vcpu *command(const char *line, struct vcpu *v)
{
    uint64_t n[5];
    const int numbers = sscanf(strchr(line, ' ') ? strchr(line, ' ') : "", "%" SCNx64 "%" SCNx64 "%" SCNx64 "%" SCNx64
                               "%" SCNx64, &n[0], &n[1], &n[2], &n[3], &n[4]);
    if (!strncmp(line, "new ", 4) && numbers == 5) {
        begin((uint32_t)n[0], (uint32_t)n[1], (uint32_t)n[2], (uint32_t)n[3], (uint32_t)n[4]);
        return &tap_vcpus[0];
    }
    if (!strncmp(line, "slice ", 6) && numbers == 2) {
        struct vcpu *next = &tap_vcpus[n[0]];
        enter_slice(next, (uint32_t)n[1]);
        next->used = v->used;
        if (tap.by_task || (control.clear_on_slice && next != v)) {
            filter_clear(next);
            fetch_clear(next);
        }
        look_at_epoch(next);
        return next;
    }
    if (!strncmp(line, "run ", 4) && numbers == 1) {
        v->instructions[USER] += n[0];
        look_at_epoch(v);
    } else if (!strncmp(line, "ref ", 4) && numbers == 4) {
        touch(v, (enum nm_kind)n[0], n[1], (unsigned)n[2], &insns[n[3] % INSNS]);
    } else if (!strncmp(line, "wide ", 5) && numbers == 3) {
        store_wide(v, n[0], (unsigned)n[1], &insns[n[2] % INSNS]);
    } else if (!strncmp(line, "context ", 8) && numbers == 1) {
        v->context = (uint32_t)n[0];
        ring_control(v, NM_C_CONTEXT, n[0], 0, 0, NULL, 0);
    } else if (!strncmp(line, "fence", 5)) {
        if (fence_matters(v))
            ring_control(v, NM_C_FENCE, 0, 0, 0, NULL, 0);
        v->nt_pending = 0;
    } else if (!strncmp(line, "send", 4)) {
        for (uint32_t i = 0; i < v->used; i++)
            printf("%" PRIx64 " %" PRIx64 "\n", sent[i].a, sent[i].b);
        printf("end\n");
        fflush(stdout);
        v->used = 0;
    } else {
        fprintf(stderr, "not a command: %s", line);
        exit(2);
    }
    return v;
}

int main(void)
{
    char line[256];
    struct vcpu *v = &tap_vcpus[0];
    while (fgets(line, sizeof line, stdin))
        v = command(line, v);
    return 0;
}
