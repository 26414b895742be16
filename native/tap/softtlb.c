/* SPDX-License-Identifier: GPL-2.0-or-later
 *
 * A translation cache of our own, a vCPU: a request to QEMU for the physical address of every access costs thirteen
 * times as much. Flushed by every instruction that flushes a real one.
 */
#include "engine.h"

#include <inttypes.h>
#include <string.h>

/* QEMU 7's struct qemu_plugin_hwaddr for RAM: what its own accessor reads, but that one counts the place of a second
 * memory node twice. The first translations check that this is what it looks like. */
struct hwaddr_v1 {
    bool is_io, is_store;
    void *host;
};

/* meminfo's lowest bits: the part of QEMU's translation cache that the access goes by. Some have one bit more, which is
 * 0 on x86. */
enum { MODE_MASK = 15 };
enum { UNKNOWN, BY_HOST_POINTER, BY_PHYSICAL_ADDRESS };
static int way = UNKNOWN;

static void choose_way(const struct qemu_plugin_hwaddr *hw)
{
    if (engine_has_right_addresses()) {
        way = BY_PHYSICAL_ADDRESS;
        return;
    }
    uint64_t offset = ram_of_host(((const struct hwaddr_v1 *)hw)->host);
    uint64_t physical = qemu_plugin_hwaddr_phys_addr(hw);
    if (offset != ~0ULL && (physical == offset || (physical > offset && physical - offset <= ram_bytes())))
        way = BY_HOST_POINTER;
    else if (physical < tap.control->node_bytes[0])
        tap_fail("this QEMU's physical addresses are not understood (%#" PRIx64 " and %#" PRIx64 "): use QEMU 7.2",
                 physical, offset);
}

uint64_t softtlb_fill(struct vcpu *v, qemu_plugin_meminfo_t info, uint64_t vaddr)
{
    const struct qemu_plugin_hwaddr *hw = qemu_plugin_get_hwaddr(info, vaddr);
    if (!hw || qemu_plugin_hwaddr_is_io(hw))
        return NO_PAGE;
    if (unlikely(way == UNKNOWN))
        choose_way(hw);
    uint64_t offset = way == BY_HOST_POINTER ? ram_of_host(((const struct hwaddr_v1 *)hw)->host)
                                             : ram_of_physical(qemu_plugin_hwaddr_phys_addr(hw));
    if (offset == ~0ULL)
        return NO_PAGE;
    v->tlb[(vaddr >> 12) % TLB_ENTRIES] = (struct tlb_entry){softtlb_tag(v, vaddr), offset >> 12};
    if (++v->pages > v->refill.pages_most)
        v->refill.pages_most = v->pages;
    if (!(vaddr >> 63))
        v->refill.modes |= 1u << (info & MODE_MASK);
    if (unlikely(v->pages > v->refill.pages_limit))
        refill_pages(v);
    maps_poll(v);
    return offset >> 12;
}

void softtlb_flush(struct vcpu *v)
{
    v->pages = 0;
    if (unlikely(++v->tlb_generation >> 28)) {
        v->tlb_generation = 1;
        memset(v->tlb, 0, sizeof v->tlb);
    }
}
