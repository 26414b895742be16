/* SPDX-License-Identifier: GPL-2.0-or-later
 *
 * Four sweeps over an area each, of 16,384 stores and 65,536 instructions, with marks, a function of its own or time
 * between them: `window` or `window sleep`. Prints where the areas are.
 */
#include "nearmiss.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum { LINES = 16384, AREAS = 4 };
static char areas[AREAS][LINES * 64] __attribute__((aligned(4096)));

static inline __attribute__((always_inline)) void sweep(int area)
{
    char *at = areas[area];
    int left = LINES;
    __asm__ volatile("1: movb $1, (%0)\n\t"
                     "add $64, %0\n\t"
                     "dec %1\n\t"
                     "jnz 1b"
                     : "+r"(at), "+r"(left)
                     :
                     : "memory", "cc");
}

__attribute__((noinline)) void work(void);
void work(void) { sweep(2); }

int main(int count, char **arguments)
{
    const int pause = count > 1 && !strcmp(arguments[1], "sleep") ? 3 : 0;
    memset(areas, 1, sizeof areas);
    sweep(0);
    sleep(pause);
    NEARMISS_MARK(1);
    sweep(1);
    sleep(pause);
    work();
    NEARMISS_MARK(2);
    sweep(3);
    NEARMISS_MARK(1);
    for (int i = 0; i < AREAS; i++)
        printf("area%d %p\n", i, (void *)areas[i]);
    return 7;
}
