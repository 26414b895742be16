/* SPDX-License-Identifier: GPL-2.0-or-later
 *
 * Execution enters a line of code: instructions are counted here, and the line is sent unless its set of the fetch
 * filter held it, or the first level has it, where the tap runs that. Both go by physical lines, which are known at
 * translation.
 */
#include "code_line.h"
#include "record.h"

static __attribute__((noinline)) void send(struct vcpu *v, const struct nm_insn *insn, uint64_t vaddr, uint64_t page,
                                           unsigned bytes_shift, int kernel, unsigned word)
{
    const unsigned bytes = insn->flags >> bytes_shift & NM_I_FETCHED_MASK;
    if (v->fetch_page != vaddr >> 12) {
        v->fetch_page = vaddr >> 12;
        maps_poll(v);
    }
    record_send(v, insn, vaddr, bytes, NM_FETCH, kernel ? NM_F_KERNEL : 0, page, word);
}

static inline void enter_line(struct vcpu *v, const struct nm_insn *insn, uint64_t vaddr, uint64_t paddr,
                              unsigned bytes_shift, int kernel, int solo)
{
    const uint64_t line = paddr >> (solo ? SOLO_LINE_LOG2 : tap.line_log2);
    const uint64_t set = (vaddr >> (solo ? SOLO_LINE_LOG2 : tap.index_low)) & tap.index_mask;
    if (likely(v->fetched[set] == line))
        return;
    v->fetched[set] = line;
    send(v, insn, vaddr, paddr >> 12, bytes_shift, kernel, 0);
}

/* 1 if what follows is recorded. */
static inline __attribute__((always_inline)) int enter_run(struct vcpu *v, struct nm_insn *insn, uint64_t instructions,
                                                           int kernel)
{
    if (unlikely(v->attention) && !window_attend_run(v, kernel))
        return 0;
    if (unlikely(v->instructions[USER] + v->instructions[KERNEL] >= v->instructions_limit) && window_spent(v))
        return 0;
    insn->executions++;
    v->instructions[kernel] += instructions;
    return 1;
}

static inline struct vcpu *vcpu_of(unsigned index, int solo) { return solo ? &tap_vcpus[0] : &tap_vcpus[index]; }

static inline __attribute__((always_inline)) void one_line(unsigned index, struct nm_insn *insn, int kernel, int solo)
{
    struct vcpu *v = vcpu_of(index, solo);
    if (enter_run(v, insn, insn->run, kernel))
        enter_line(v, insn, insn->vaddr, insn->paddr, NM_I_FETCHED_SHIFT, kernel, solo);
}

/* An instruction that straddles two lines enters both. */
static inline __attribute__((always_inline)) void two_lines(unsigned index, struct nm_insn *insn, int kernel, int solo)
{
    struct vcpu *v = vcpu_of(index, solo);
    if (!enter_run(v, insn, insn->run, kernel))
        return;
    enter_line(v, insn, insn->vaddr, insn->paddr, NM_I_FETCHED_SHIFT, kernel, solo);
    uint64_t second = (insn->vaddr | (tap.line_bytes - 1)) + 1;
    uint64_t paddr = insn->paddr + (second - insn->vaddr);
    if ((second & 4095) == 0) {
        /* The next page lies anywhere. It is known if data there was touched; else the next block enters it. */
        uint64_t page = softtlb_known(v, second);
        if (page == NO_PAGE)
            return;
        paddr = page << 12;
    }
    enter_line(v, insn, second, paddr, NM_I_FETCHED_SECOND_SHIFT, kernel, solo);
}

static __attribute__((noinline)) void line_news(struct vcpu *v, const struct nm_insn *insn, struct code_line *line,
                                                uint64_t vaddr, unsigned bytes_shift, int kernel)
{
    const unsigned word = code_line_news(&v->code, line);
    send(v, insn, vaddr, line->line >> (12 - SOLO_LINE_LOG2), bytes_shift, kernel, word);
}

/* Both as above, where the tap runs the first level. */
static inline __attribute__((always_inline)) int level_run(struct vcpu *v, const struct code_run *run, int kernel,
                                                           int misses_only)
{
    if (!enter_run(v, run->insn, run->instructions, kernel))
        return 0;
    const uint64_t now = v->instructions[USER] + v->instructions[KERNEL];
    if (unlikely(code_line_used(&v->code, run->first, now, misses_only)))
        line_news(v, run->insn, run->first, run->insn->vaddr, NM_I_FETCHED_SHIFT, kernel);
    return 1;
}

static __attribute__((noinline)) void level_second(struct vcpu *v, const struct code_run *run, int kernel)
{
    const uint64_t second = (run->insn->vaddr | (tap.line_bytes - 1)) + 1;
    struct code_line *line = run->second;
    if (!line) {
        const uint64_t page = softtlb_known(v, second);
        if (page == NO_PAGE || !(line = code_line_at(page << 12)))
            return;
    }
    if (code_line_used(&v->code, line, v->instructions[USER] + v->instructions[KERNEL], tap.misses_only))
        line_news(v, run->insn, line, second, NM_I_FETCHED_SECOND_SHIFT, kernel);
}

/* The whole of `level_run` where nothing is out of the ordinary; 0: something is, and nothing was done. */
static inline __attribute__((always_inline)) int level_run_plainly(struct vcpu *v, const struct code_run *run,
                                                                   int kernel, int misses_only)
{
    const uint64_t before = v->instructions[USER] + v->instructions[KERNEL];
    if (unlikely(v->attention || before >= v->instructions_limit || !run->first->sent))
        return 0;
    run->insn->executions++;
    v->instructions[kernel] += run->instructions;
    code_line_used(&v->code, run->first, before + run->instructions, misses_only);
    return 1;
}

#define LEVEL_CALLBACKS(mode, kernel, misses_only)                                                                     \
    static __attribute__((noipa)) void level_one_line_slow_##mode(unsigned index, void *run)                           \
    {                                                                                                                  \
        (void)index;                                                                                                   \
        level_run(&tap_vcpus[0], run, kernel, misses_only);                                                            \
    }                                                                                                                  \
    static void level_one_line_##mode(unsigned index, void *run)                                                       \
    {                                                                                                                  \
        if (unlikely(!level_run_plainly(&tap_vcpus[0], run, kernel, misses_only)))                                     \
            level_one_line_slow_##mode(index, run);                                                                    \
    }                                                                                                                  \
    static void level_two_lines_##mode(unsigned index, void *run)                                                      \
    {                                                                                                                  \
        (void)index;                                                                                                   \
        if (level_run(&tap_vcpus[0], run, kernel, misses_only))                                                        \
            level_second(&tap_vcpus[0], run, kernel);                                                                  \
    }
LEVEL_CALLBACKS(user, USER, 0)
LEVEL_CALLBACKS(kernel, KERNEL, 0)
LEVEL_CALLBACKS(user_misses, USER, 1)
LEVEL_CALLBACKS(kernel_misses, KERNEL, 1)

static inline void count_only(unsigned index, struct nm_insn *insn, int kernel, int solo)
{
    enter_run(vcpu_of(index, solo), insn, insn->run, kernel);
}

#define CALLBACK(name)                                                                                                 \
    static void name##_user(unsigned index, void *insn) { name(index, insn, USER, 0); }                                \
    static void name##_kernel(unsigned index, void *insn) { name(index, insn, KERNEL, 0); }                            \
    static void name##_user_solo(unsigned index, void *insn) { name(index, insn, USER, 1); }                           \
    static void name##_kernel_solo(unsigned index, void *insn) { name(index, insn, KERNEL, 1); }                       \
    static const qemu_plugin_exec_cb_t name##_callbacks[2][2] = {{name##_user, name##_kernel},                         \
                                                                 {name##_user_solo, name##_kernel_solo}};
CALLBACK(one_line)
CALLBACK(two_lines)
CALLBACK(count_only)

static void on_entry(struct qemu_plugin_tb *tb, size_t index, qemu_plugin_exec_cb_t callback, void *data)
{
    if (index == 0)
        qemu_plugin_register_vcpu_tb_exec_cb(tb, callback, QEMU_PLUGIN_CB_NO_REGS, data);
    else
        qemu_plugin_register_vcpu_insn_exec_cb(qemu_plugin_tb_get_insn(tb, index), callback, QEMU_PLUGIN_CB_NO_REGS,
                                               data);
}

/* Returns a run's facts known at its translation; NULL if it has too many lines. */
static struct code_run *find_run(struct nm_insn *insn, int second_line)
{
    struct code_run *run = &tap_code_runs[insn_id(insn)];
    const uint64_t second = (insn->paddr | (tap.line_bytes - 1)) + 1;
    const int in_page = second_line && second & 4095;
    *run = (struct code_run){code_line_at(insn->paddr), in_page ? code_line_at(second) : NULL, insn, insn->run};
    return run->first && (run->second || !in_page) ? run : NULL;
}

static void level_register(struct qemu_plugin_tb *tb, size_t index, struct nm_insn *insn, int kernel, int second_line)
{
    static const qemu_plugin_exec_cb_t callbacks[2][2][2] = {
        {{level_one_line_user, level_one_line_kernel}, {level_two_lines_user, level_two_lines_kernel}},
        {{level_one_line_user_misses, level_one_line_kernel_misses},
         {level_two_lines_user_misses, level_two_lines_kernel_misses}},
    };
    struct code_run *run = find_run(insn, second_line);
    if (run)
        on_entry(tb, index, callbacks[tap.misses_only][second_line][kernel], run);
}

void fetch_register(struct qemu_plugin_tb *tb, size_t index, struct nm_insn *insn, int kernel, int second_line)
{
    qemu_plugin_exec_cb_t callback;
    if (!tap.control->fetches || insn->paddr == ~0ULL)
        callback = count_only_callbacks[tap.solo][kernel];
    else if (tap.first_fetch)
        return level_register(tb, index, insn, kernel, second_line);
    else if (second_line)
        callback = two_lines_callbacks[tap.solo][kernel];
    else
        callback = one_line_callbacks[tap.solo][kernel];
    on_entry(tb, index, callback, insn);
}
