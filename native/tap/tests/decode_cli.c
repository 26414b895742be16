/* SPDX-License-Identifier: GPL-2.0-or-later
 *
 * Reads one instruction a line as hexadecimal bytes, prints what the decoder makes of it, by names.
 */
#include "../decode.h"

#include <stdio.h>
#include <string.h>

static const struct {
    uint32_t flag;
    const char *name;
} names[] = {
    {D_MEMORY, "memory"},   {D_ATOMIC, "atomic"},       {D_PAIR_CX, "pair"},     {D_NT, "nt"},
    {D_WIDE, "wide"},       {D_RMW, "rmw"},             {D_CALL, "call"},        {D_RETURN, "return"},
    {D_IRET, "iret"},       {D_HALT, "halt"},           {D_FENCE, "fence"},      {D_TLB_FLUSH, "tlbflush"},
    {D_PREFETCH, "prefetch"}, {D_GS, "gs"},             {D_PUSH_IMMEDIATE, "pushimm"}, {D_TRIGGER, "trigger"},
    {D_LOADS, "loads"},     {D_STORES, "stores"},       {D_CONDITION, "condition"}, {D_COMPUTED, "computed"},
};

int main(void)
{
    char line[256];
    while (fgets(line, sizeof line, stdin)) {
        uint8_t code[16] = {0};
        size_t length = 0;
        const char *at = line;
        unsigned byte;
        int used;
        while (length < 15 && sscanf(at, "%2x%n", &byte, &used) == 1) {
            code[length++] = (uint8_t)byte;
            at += used;
        }
        uint32_t flags = decode(code, length);
        for (size_t i = 0; i < sizeof names / sizeof *names; i++)
            if (flags & names[i].flag)
                printf("%s ", names[i].name);
        printf("\n");
    }
    return 0;
}
