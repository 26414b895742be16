/* SPDX-License-Identifier: GPL-2.0-or-later
 *
 * Pages that the kernel clears, in parts and in pauses. Page faults come in bursts, so that the parts of a run have more
 * or fewer of them than the run by chance. Their number is known for all of it.
 *
 * All code is translated anew at each change between a part and a pause, so that a block counts for its own kind.
 */
#include "engine.h"

static void on_clearing(unsigned index, void *counter)
{
    (void)index;
    ++*(uint64_t *)counter;
}

void cleared_register(struct qemu_plugin_tb *tb, int is_paused)
{
    struct qemu_plugin_insn *first = qemu_plugin_tb_get_insn(tb, 0);
    const uint64_t vaddr = qemu_plugin_insn_vaddr(first);
    for (unsigned i = 0; i < NM_CLEARING; i++) {
        if (vaddr && vaddr == tap.control->clearing[i])
            qemu_plugin_register_vcpu_insn_exec_cb(first, on_clearing, QEMU_PLUGIN_CB_NO_REGS,
                                                   &tap.control->cleared[is_paused]);
    }
}

void cleared_begin(void) { tap.control->cleared[0] = tap.control->cleared[1] = 0; }
