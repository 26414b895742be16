/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "decode.h"

#include <stdbool.h>

#pragma GCC visibility push(hidden)

enum prefix { NONE, P66, PF3, PF2 };

struct insn {
    const uint8_t *code;
    size_t length, at; /* at: the byte after the opcode, the modrm byte if there is one */
    enum prefix prefix;
    bool lock, gs, rex_w, vex, evex;
    unsigned map; /* 1: one byte, 2: 0f, 3: 0f 38, 4: 0f 3a */
    uint8_t opcode;
};

static uint8_t byte_at(const struct insn *i, size_t at)
{
    return at < i->length ? i->code[at] : 0;
}

static unsigned mod(const struct insn *i) { return byte_at(i, i->at) >> 6; }
static unsigned reg(const struct insn *i) { return byte_at(i, i->at) >> 3 & 7; }
static bool is_memory_form(const struct insn *i) { return i->at < i->length && mod(i) != 3; }

static void vex_fields(struct insn *i, uint8_t map, uint8_t last)
{
    static const enum prefix of_pp[] = {NONE, P66, PF3, PF2};
    i->vex = true;
    i->map = (map & 7) + 1;
    i->prefix = of_pp[last & 3];
    i->rex_w = last >> 7;
}

static void parse(struct insn *i, const uint8_t *code, size_t length)
{
    *i = (struct insn){.code = code, .length = length, .map = 1};
    size_t at = 0;
    for (; at < length; at++) {
        uint8_t b = code[at];
        if (b == 0x66) {
            if (i->prefix == NONE)
                i->prefix = P66;
        } else if (b == 0xf3) {
            i->prefix = PF3;
        } else if (b == 0xf2) {
            i->prefix = PF2;
        } else if (b == 0xf0) {
            i->lock = true;
        } else if (b == 0x65) {
            i->gs = true;
        } else if (b != 0x67 && b != 0x2e && b != 0x36 && b != 0x3e && b != 0x26 && b != 0x64) {
            break;
        }
    }
    uint8_t b = byte_at(i, at);
    if ((b & 0xf0) == 0x40) {
        i->rex_w = b >> 3 & 1;
        b = byte_at(i, ++at);
    }
    if (b == 0xc5) {
        uint8_t last = byte_at(i, at + 1);
        vex_fields(i, 1, last & 0x7f);
        at += 2;
    } else if (b == 0xc4) {
        vex_fields(i, byte_at(i, at + 1) & 0x1f, byte_at(i, at + 2));
        at += 3;
    } else if (b == 0x62) {
        vex_fields(i, byte_at(i, at + 1) & 7, byte_at(i, at + 2));
        i->evex = true;
        at += 4;
    } else if (b == 0x0f) {
        b = byte_at(i, ++at);
        i->map = 2;
        if (b == 0x38 || b == 0x3a) {
            i->map = b == 0x38 ? 3 : 4;
            at++;
        }
    }
    i->opcode = byte_at(i, at);
    i->at = at + 1;
}

static uint32_t memory_if(bool yes, uint32_t more) { return yes ? D_MEMORY | more : 0; }

static uint32_t x87(const struct insn *i)
{
    if (!is_memory_form(i))
        return 0;
    unsigned r = reg(i);
    bool wide = (i->opcode == 0xdb && (r == 5 || r == 7)) || (i->opcode == 0xdd && (r == 4 || r == 6)) ||
                (i->opcode == 0xd9 && (r == 4 || r == 6)) || (i->opcode == 0xdf && (r == 4 || r == 6));
    return D_MEMORY | (wide ? D_WIDE : 0);
}

static uint32_t one_byte(const struct insn *i)
{
    uint8_t op = i->opcode;
    bool memory = is_memory_form(i);
    unsigned r = reg(i);
    if (op < 0x40) {
        if ((op & 7) >= 4)
            return 0;
        bool to_memory = (op & 2) == 0 && op < 0x38;
        return memory_if(memory, to_memory ? D_RMW : D_LOADS);
    }
    if ((op >= 0x70 && op <= 0x7f) || (op >= 0xe0 && op <= 0xe3))
        return D_CONDITION;
    if (op >= 0x50 && op <= 0x5f)
        return D_MEMORY | (op < 0x58 ? D_STORES : D_LOADS);
    if (op >= 0xd8 && op <= 0xdf)
        return x87(i);
    switch (op) {
    case 0x68: case 0x6a:
        return D_MEMORY | D_PUSH_IMMEDIATE | D_STORES;
    case 0x80: case 0x81: case 0x83:
        return memory_if(memory, r == 7 ? D_LOADS : D_RMW);
    case 0x86: case 0x87:
        return memory_if(memory, D_ATOMIC);
    case 0x8d:
        return 0;
    case 0x63: case 0x69: case 0x6b: case 0x84: case 0x85: case 0x8a: case 0x8b:
        return memory_if(memory, D_LOADS);
    case 0x8e: /* a descriptor is read besides, and marked as used */
        return memory_if(memory, 0);
    case 0x88: case 0x89: case 0x8c: case 0xc6: case 0xc7:
        return memory_if(memory, D_STORES);
    case 0x9d: case 0xa0: case 0xa1: case 0xa6: case 0xa7: case 0xac: case 0xad: case 0xae: case 0xaf: case 0xc9:
    case 0xd7:
        return D_MEMORY | D_LOADS;
    case 0x9c: case 0xa2: case 0xa3: case 0xaa: case 0xab:
        return D_MEMORY | D_STORES;
    case 0x8f: case 0x6c: case 0x6d: case 0x6e: case 0x6f: case 0xa4: case 0xa5: case 0xc8: case 0xcc: case 0xcd:
        return D_MEMORY;
    case 0xc0: case 0xc1: case 0xd0: case 0xd1: case 0xd2: case 0xd3:
        return memory_if(memory, D_RMW);
    case 0xc2: case 0xc3: case 0xca: case 0xcb:
        return D_MEMORY | D_RETURN | D_LOADS;
    case 0xcf:
        return D_MEMORY | D_IRET | D_FENCE;
    case 0xe8:
        return D_MEMORY | D_CALL | D_STORES;
    case 0xf4:
        return D_HALT;
    case 0xf6: case 0xf7:
        return memory_if(memory, r == 2 || r == 3 ? D_RMW : D_LOADS);
    case 0xfe:
        return memory_if(memory, r <= 1 ? D_RMW : 0);
    case 0xff:
        if (r == 2 || r == 3)
            return D_MEMORY | D_CALL | D_COMPUTED | (memory ? 0 : D_STORES);
        if (r == 4)
            return D_COMPUTED | memory_if(memory, D_LOADS);
        if (r == 6)
            return D_MEMORY | (memory ? 0 : D_STORES);
        return memory_if(memory, r <= 1 ? D_RMW : 0);
    }
    return 0;
}

/* SSE and AVX opcodes of the 0f map with an operand wider than eight bytes. */
static bool vector_is_wide(const struct insn *i)
{
    uint8_t op = i->opcode;
    bool vector = (op >= 0x10 && op <= 0x17) || (op >= 0x28 && op <= 0x2f) || (op >= 0x50 && op <= 0x7f) ||
                  op == 0xc2 || op == 0xc6 || op >= 0xd0;
    if (!vector)
        return false;
    if (i->prefix == PF3 || i->prefix == PF2) {
        switch (op) {
        case 0x6f: case 0x7f: case 0x12: case 0x16: case 0xf0: case 0xe6: case 0x5b: case 0x7c: case 0x7d: case 0xd0:
        case 0x70:
            return true;
        }
        return false;
    }
    switch (op) {
    case 0x12: case 0x13: case 0x16: case 0x17: case 0x2a: case 0x2c: case 0x2d: case 0x2e: case 0x2f: case 0x6e:
    case 0x7e: case 0xd6:
        return false;
    }
    bool mmx = (op >= 0x60 && op <= 0x7f) || op >= 0xd0;
    return i->prefix == P66 || i->vex || !mmx;
}

/* Opcodes of the 0f map that only load, or only store; of the vectors' moves those that are narrow. */
static uint32_t two_byte_direction(const struct insn *i)
{
    uint8_t op = i->opcode;
    bool arithmetic = op >= 0x51 && op <= 0x5f, moves_if = op >= 0x40 && op <= 0x4f && !i->vex;
    if (moves_if || arithmetic)
        return D_LOADS;
    if (op >= 0x90 && op <= 0x9f && !i->vex)
        return D_STORES;
    switch (op) {
    case 0x10: case 0x12: case 0x16: case 0x2a: case 0x2c: case 0x2d: case 0x2e: case 0x2f: case 0x6e: case 0x6f:
    case 0xa3: case 0xaf: case 0xb6: case 0xb7: case 0xbc: case 0xbd: case 0xbe: case 0xbf: case 0xc2:
        return D_LOADS;
    case 0x11: case 0x13: case 0x17: case 0x7f: case 0xd6:
        return D_STORES;
    case 0x7e: /* movd and movq to memory; with f3 movq from it */
        return i->prefix == PF3 ? D_LOADS : D_STORES;
    }
    return 0;
}

static bool has_no_modrm(uint8_t op)
{
    return (op >= 0x05 && op <= 0x0c) || op == 0x0e || (op >= 0x30 && op <= 0x37) || op == 0x77 ||
           (op >= 0x80 && op <= 0x8f) || op == 0xa2 || op == 0xaa || (op >= 0xc8 && op <= 0xcf);
}

static uint32_t group_0f01(const struct insn *i)
{
    if (is_memory_form(i))
        return reg(i) == 7 ? D_TLB_FLUSH : D_MEMORY;
    return byte_at(i, i->at) == 0xc9 ? D_HALT : 0;
}

static uint32_t group_0fae(const struct insn *i)
{
    unsigned r = reg(i);
    if (!is_memory_form(i))
        return r >= 6 && i->prefix == NONE ? D_FENCE : 0;
    if (r == 7 || (r == 6 && i->prefix == P66)) /* clflush, clflushopt, clwb */
        return 0;
    return D_MEMORY | (r == 2 || r == 3 ? 0 : D_WIDE);
}

static uint32_t two_byte(const struct insn *i)
{
    uint8_t op = i->opcode;
    bool memory = is_memory_form(i);
    unsigned r = reg(i);
    if (op >= 0x80 && op <= 0x8f)
        return D_CONDITION;
    if (has_no_modrm(op))
        return 0;
    switch (op) {
    case 0x01:
        return group_0f01(i);
    case 0x0d:
        return memory ? D_PREFETCH : 0;
    case 0x18:
        return memory && r <= 3 ? D_PREFETCH : 0;
    case 0x19: case 0x1a: case 0x1b: case 0x1c: case 0x1d: case 0x1e: case 0x1f:
        return 0;
    case 0x20: case 0x21: case 0x23:
        return 0;
    case 0x22:
        return r == 0 || r == 3 || r == 4 ? D_TLB_FLUSH : 0;
    case 0x2b:
        return memory_if(memory, i->prefix == PF2 || i->prefix == PF3 ? D_NT : D_NT | D_WIDE);
    case 0xe7:
        return memory_if(memory, i->prefix == P66 || i->vex ? D_NT | D_WIDE : D_NT);
    case 0xc3:
        return memory_if(memory, D_NT);
    case 0xf7: /* maskmovq, maskmovdqu: to (%rdi) */
        return D_MEMORY | D_NT | D_WIDE;
    case 0xa0: case 0xa1: case 0xa8: case 0xa9:
        return D_MEMORY;
    case 0xa4: case 0xa5: case 0xab: case 0xac: case 0xad: case 0xb0: case 0xb1: case 0xb3: case 0xbb: case 0xc0:
    case 0xc1:
        return memory_if(memory, D_RMW);
    case 0xba:
        return memory_if(memory, r >= 5 ? D_RMW : 0);
    case 0xae:
        return group_0fae(i);
    case 0xc7:
        if (memory && r == 1)
            return D_MEMORY | (i->lock ? D_PAIR_CX : D_RMW | D_WIDE);
        return memory_if(memory, D_WIDE);
    }
    return memory_if(memory, two_byte_direction(i) | (vector_is_wide(i) ? D_WIDE : 0));
}

static uint32_t map_0f38(const struct insn *i)
{
    uint8_t op = i->opcode;
    if (!i->vex && i->prefix == P66 && op >= 0x80 && op <= 0x82)
        return D_TLB_FLUSH;
    if (!is_memory_form(i))
        return 0;
    bool general = op >= 0xf0; /* movbe, crc32, adx, bmi */
    bool gather = op >= 0x90 && op <= 0x93;
    bool narrow = general || gather || (!i->vex && i->prefix != P66 && !(op >= 0xc8 && op <= 0xcd));
    return D_MEMORY | (narrow ? 0 : D_WIDE);
}

static uint32_t map_0f3a(const struct insn *i)
{
    bool general = i->opcode == 0xf0; /* rorx */
    bool mmx = !i->vex && i->prefix != P66 && i->opcode != 0xcc;
    return memory_if(is_memory_form(i), general || mmx ? 0 : D_WIDE);
}

uint32_t decode(const uint8_t *code, size_t length)
{
    if (length == 8 && code[0] == 0x0f && code[1] == 0x1f && code[2] == 0x84 && code[3] == 0)
        return D_TRIGGER;
    struct insn i;
    parse(&i, code, length);
    uint32_t flags;
    switch (i.map) {
    case 1: flags = one_byte(&i); break;
    case 2: flags = two_byte(&i); break;
    case 3: flags = map_0f38(&i); break;
    case 4: flags = map_0f3a(&i); break;
    default: flags = memory_if(is_memory_form(&i), D_WIDE); break;
    }
    if (i.lock && (flags & D_MEMORY))
        flags = (flags & ~(uint32_t)(D_RMW | D_WIDE | D_LOADS | D_STORES)) | D_ATOMIC;
    if (i.gs)
        flags |= D_GS;
    return flags;
}

uint32_t decode_trigger(const uint8_t *code)
{
    return (uint32_t)code[4] | (uint32_t)code[5] << 8 | (uint32_t)code[6] << 16 | (uint32_t)code[7] << 24;
}

int decode_rex_w(const uint8_t *code, size_t length)
{
    struct insn i;
    parse(&i, code, length);
    return i.rex_w;
}
