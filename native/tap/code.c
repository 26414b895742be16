/* SPDX-License-Identifier: GPL-2.0-or-later
 *
 * The code that runs: each translated block is sent once, ahead of the first record of its instructions. QEMU
 * translates the same code again when its cache was emptied; that is sent again only where bytes, addresses or
 * instruction ids are others. Before the window opens blocks are kept here, since QEMU does not translate them again
 * then.
 */
#include "tap.h"

#include <stdlib.h>
#include <string.h>

enum { HEAD_BYTES = 12, NAME_BYTES = 6 };

/* The block that is being translated. */
static struct {
    uint64_t vaddr;
    uint32_t names, code_bytes;
    uint8_t payload[CODE_PAYLOAD_MAX]; /* its names, and at the end its code */
    uint8_t code[BLOCK_INSNS_MAX * INSN_BYTES_MAX];
} block;

/* Blocks from before the window, in order. */
struct held {
    struct held *next;
    uint64_t vaddr;
    uint32_t bytes;
    uint8_t payload[];
};
static struct held *first, **last = &first;

static uint64_t *sent_hashes; /* hashes of what was sent; 0: empty; open addressing */
static uint64_t size, used;

static uint64_t mix(uint64_t h, uint64_t word)
{
    h = (h ^ word) * 0x9e3779b97f4a7c15ULL;
    return h ^ h >> 29;
}

/* 64 bits distinguish a million blocks but for one chance in thirty million. */
static uint64_t hash(uint64_t vaddr, const uint8_t *payload, uint32_t bytes)
{
    uint64_t h = mix(mix(0, vaddr), bytes);
    for (uint32_t at = 0; at < bytes; at += 8) {
        uint64_t word = 0;
        memcpy(&word, payload + at, bytes - at < 8 ? bytes - at : 8);
        h = mix(h, word);
    }
    return h ? h : 1;
}

static uint64_t *place_of(uint64_t h)
{
    uint64_t at = h & (size - 1);
    while (sent_hashes[at] && sent_hashes[at] != h)
        at = (at + 1) & (size - 1);
    return &sent_hashes[at];
}

static int grow(void)
{
    uint64_t *before = sent_hashes, before_size = size;
    uint64_t *fresh = calloc(size ? size * 2 : 1u << 14, sizeof *fresh);
    if (!fresh)
        return 0;
    sent_hashes = fresh;
    size = size ? size * 2 : 1u << 14;
    for (uint64_t i = 0; i < before_size; i++)
        if (before[i])
            *place_of(before[i]) = before[i];
    free(before);
    return 1;
}

/* Notes a block; returns 0 if it was sent before, or if there is no memory, which ends the recording. */
static int is_news(uint64_t h)
{
    if (used * 2 >= size && !grow()) {
        tap_fail("out of memory for the table of code");
        return 0;
    }
    uint64_t *place = place_of(h);
    if (*place)
        return 0;
    *place = h;
    used++;
    return 1;
}

static void hold(uint64_t vaddr, const uint8_t *payload, uint32_t bytes)
{
    struct held *h = malloc(sizeof *h + bytes);
    if (!h) {
        tap_fail("out of memory for code from before the window");
        return;
    }
    *h = (struct held){NULL, vaddr, bytes};
    memcpy(h->payload, payload, bytes);
    *last = h;
    last = &h->next;
}

static void send(struct vcpu *v, uint64_t vaddr, const uint8_t *payload, uint32_t bytes)
{
    ring_control(v, NM_C_CODE, vaddr, 0, bytes, payload, bytes);
}

/* A block that is translated before any vCPU is known is sent as the first vCPU's. */
static void send_now(uint64_t vaddr, const uint8_t *payload, uint32_t bytes)
{
    struct vcpu *here = window_vcpu();
    if (window_is_open())
        send(here ? here : tap_vcpus, vaddr, payload, bytes);
}

void code_begin(uint64_t vaddr, uint64_t paddr)
{
    block.vaddr = vaddr;
    block.names = block.code_bytes = 0;
    memcpy(block.payload, &paddr, sizeof paddr);
}

void code_insn(const uint8_t *bytes, size_t count, const struct nm_insn *insn)
{
    if (count > INSN_BYTES_MAX) /* no CPU runs it: it faults, and ends its block */
        count = INSN_BYTES_MAX;
    if (insn) {
        const uint16_t offset = (uint16_t)block.code_bytes;
        const uint32_t id = insn_id(insn);
        uint8_t *name = block.payload + HEAD_BYTES + block.names++ * NAME_BYTES;
        memcpy(name, &offset, sizeof offset);
        memcpy(name + sizeof offset, &id, sizeof id);
    }
    memcpy(block.code + block.code_bytes, bytes, count);
    block.code_bytes += (uint32_t)count;
}

void code_end(void)
{
    if (!block.names)
        return;
    const uint32_t code_at = HEAD_BYTES + block.names * NAME_BYTES, bytes = code_at + block.code_bytes;
    memcpy(block.payload + sizeof(uint64_t), &block.names, sizeof block.names);
    memcpy(block.payload + code_at, block.code, block.code_bytes);
    if (!is_news(hash(block.vaddr, block.payload, bytes)))
        return;
    if (window_is_open())
        send_now(block.vaddr, block.payload, bytes);
    else
        hold(block.vaddr, block.payload, bytes);
}

void code_open(struct vcpu *v)
{
    for (struct held *h = first; h;) {
        struct held *sent = h;
        send(v, h->vaddr, h->payload, h->bytes);
        h = h->next;
        free(sent);
    }
    first = NULL;
    last = &first;
}
