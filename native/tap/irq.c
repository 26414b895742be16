/* SPDX-License-Identifier: GPL-2.0-or-later
 *
 * Interrupts: entered where an entry stub begins (its first instruction pushes a number), left by the next iretq of the
 * same task.
 */
#include "decode.h"
#include "tap.h"

enum { TIMER_STUB_BYTES = 32 };

static void enter(unsigned index, enum nm_irq irq)
{
    struct vcpu *v = &tap_vcpus[index];
    if (attend(v, KERNEL) && v->task) {
        v->task->irq_depth++;
        ring_control(v, NM_C_IRQ, 1, 0, irq, NULL, 0);
    }
}

static void on_timer(unsigned index, void *unused)
{
    (void)unused;
    enter(index, NM_IRQ_TIMER);
}

static void on_other(unsigned index, void *unused)
{
    (void)unused;
    enter(index, NM_IRQ_OTHER);
}

static void on_iret(unsigned index, void *unused)
{
    (void)unused;
    struct vcpu *v = &tap_vcpus[index];
    if (attend(v, KERNEL) && v->task && v->task->irq_depth) {
        v->task->irq_depth--;
        ring_control(v, NM_C_IRQ, 0, 0, 0, NULL, 0);
    }
}

void irq_register(struct qemu_plugin_insn *at, uint32_t decoded, uint64_t vaddr)
{
    const struct nm_control *c = tap.control;
    qemu_plugin_exec_cb_t callback = NULL;
    if (vaddr == c->timer_entry_vaddr)
        callback = on_timer;
    else if (decoded & D_PUSH_IMMEDIATE && vaddr >= c->irq_text_start && vaddr < c->irq_text_end &&
             vaddr - c->timer_entry_vaddr >= TIMER_STUB_BYTES)
        callback = on_other;
    else if (decoded & D_IRET)
        callback = on_iret;
    if (callback)
        qemu_plugin_register_vcpu_insn_exec_cb(at, callback, QEMU_PLUGIN_CB_NO_REGS, NULL);
}
