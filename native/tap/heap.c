/* SPDX-License-Identifier: GPL-2.0-or-later
 *
 * The heap shim (native/heapshim) reports an allocation by filling a mailbox; it stores the last word last. It does so
 * while it is skipped, so that store was seen by the slow path.
 */
#include "nearmiss_trigger.h"
#include "tap.h"

#include <string.h>

static void at_store(struct task *t, uint64_t vaddr, uint64_t page)
{
    t->mailbox = vaddr - offsetof(struct nearmiss_mailbox, sequence);
    t->mailbox_page = page;
}

/* In a pause, the only store that is seen. The soft TLB is of the part before: a pause sees no flushes. */
static void on_mail(unsigned index, qemu_plugin_meminfo_t info, uint64_t vaddr, void *unused)
{
    (void)unused;
    struct vcpu *v = &tap_vcpus[index];
    if (!(v->attention & ATTEND_PAUSED) || !qemu_plugin_mem_is_store(info))
        return;
    window_enter_slice(v);
    softtlb_flush(v);
    v->mail_store = vaddr;
    v->mail_store_page = softtlb_page(v, info, vaddr);
}

void heap_watch_mail(struct qemu_plugin_insn *at)
{
    qemu_plugin_register_vcpu_mem_cb(at, on_mail, QEMU_PLUGIN_CB_NO_REGS, QEMU_PLUGIN_MEM_RW, NULL);
}

/* In a pause a block may begin behind the store: then the thread's mailbox lies where its last one lay. */
static int mailbox(struct vcpu *v, uint64_t *start, uint64_t *page)
{
    struct task *t = v->task;
    if (!t)
        return 0;
    if (!(v->attention & ATTEND_PAUSED)) {
        if (!t->skip || !t->last_store)
            return 0;
        at_store(t, t->last_store, t->last_store_page);
    } else if (v->mail_store) {
        at_store(t, v->mail_store, v->mail_store_page);
        v->mail_store = 0;
    }
    *start = t->mailbox;
    *page = t->mailbox_page;
    return t->mailbox != 0;
}

/* The filter may have dropped all that ran since the last change of context: the site of what is allocated must be
 * right. A pause sees no calls: then the stack itself shows those that were seen before. Nobody reads the context of
 * what is freed. */
static void send_context(struct vcpu *v, const struct nearmiss_mailbox *mail)
{
    const int takes = mail->operation == NM_HEAP_ALLOC || mail->operation == NM_HEAP_REALLOC;
    if (!(v->attention & ATTEND_PAUSED))
        contexts_send_user(v);
    else if (mail->operation != NM_HEAP_FREE)
        contexts_send(v, takes && tap.contexts ? callers_on_stack(v, mail) : 0);
    if (takes && tap.contexts && !(v->attention & ATTEND_PAUSED))
        callers_learn(v, mail->stack);
}

void heap_mail(struct vcpu *v)
{
    uint64_t start, page;
    if (!mailbox(v, &start, &page))
        return;
    struct nearmiss_mailbox mail;
    if ((start & 4095) > 4096 - sizeof mail)
        return;
    const void *at = ram_at(page << 12 | (start & 4095), sizeof mail);
    if (!at)
        return;
    memcpy(&mail, at, sizeof mail);
    if (mail.sequence == v->task->mail_sequence) /* not the mailbox any more */
        return;
    v->task->mail_sequence = mail.sequence;
    if (mail.operation < NM_HEAP_ALLOC || mail.operation > NM_HEAP_TRIM)
        return;
    send_context(v, &mail);
    const uint64_t payload[4] = {mail.address, mail.size, mail.old_address, mail.alignment};
    ring_control(v, NM_C_HEAP, mail.operation, 0, 0, payload, sizeof payload);
}
