/* SPDX-License-Identifier: MIT OR Apache-2.0
 *
 * Fibers with stacks from malloc, woken in turn. The stacks are above the mmap threshold, so they all end at the same
 * offset of a page, and the frames that a woken fiber uses lie in the same few sets of the first level. Natively the
 * mispredicted jumps hide most of the misses: the twin, with fibers that begin at unlike depths, saves about a tenth.
 *
 * SIZE: thousands of times that a fiber is woken. SHAPE: number of fibers.
 *
 *: half = "second"
 *: kind = "crowd"
 *: names = ["fiber_main", "pass_baton", "switch_to", "new_fiber"]
 *: reach = "outside"
 *: traced = 48
 *: measured = 5000
 *: [[case]]
 *: shape = [24]
 *: pieces = 24
 *: [[case]]
 *: shape = [48]
 *: pieces = 48
 */
#include "../planted.h"

#include <ucontext.h>

enum { MOST_FIBERS = 64, STACK_BYTES = 256 << 10, FRAME_LINES = 6, COLOR = (FRAME_LINES + 5) * LINE };

static struct fiber {
    void *at[5];
    uint64_t sum;
} fiber[MOST_FIBERS];
static void *scheduler[5];
static ucontext_t starter, begin;
static unsigned started;

HOT void jump(void **to) { __builtin_longjmp(to, 1); }
HOT void switch_to(void **from, void **to) {
    if (__builtin_setjmp(from) == 0)
        jump(to);
}
HOT void pass_baton(uint64_t *frame, uint64_t woken) {
    for (unsigned i = 0; i < FRAME_LINES; i++)
        frame[i * LINE / 8] = frame[i * LINE / 8] * 3 + woken + i;
}

HOT void wait_for_begin(void **here) {
    if (__builtin_setjmp(here) == 0)
        setcontext(&starter);
}
HOT void fiber_main(void) {
    struct fiber *self = &fiber[started];
    uint64_t frame[FRAME_LINES * LINE / 8] = {0};
    wait_for_begin(self->at);
    for (uint64_t woken = 0;; woken++) {
        pass_baton(frame, woken);
        self->sum += frame[0] + frame[LINE / 8];
        switch_to(self->at, scheduler);
    }
}

HOT void new_fiber(unsigned n) {
    char *stack = malloc(STACK_BYTES);
    if (!stack || getcontext(&begin) != 0)
        planted_fail("no stack for a fiber");
    begin.uc_stack.ss_sp = stack;
    begin.uc_stack.ss_size = STACK_BYTES - (TWINNED ? n * COLOR % PAGE : 0);
    makecontext(&begin, fiber_main, 0);
    started = n;
    swapcontext(&starter, &begin);
}

int main(int argc, char **argv) {
    uint64_t times = argument(argc, argv, 1, 1 << 30) * 1000, digest = 0;
    unsigned fibers = (unsigned)argument(argc, argv, 2, MOST_FIBERS);
    for (unsigned n = 0; n < fibers; n++)
        new_fiber(n);
    uint64_t begun = now_ns();
    for (uint64_t i = 0; i < times; i++)
        switch_to(scheduler, fiber[i % fibers].at);
    for (unsigned n = 0; n < fibers; n++)
        digest = mix(digest + fiber[n].sum);
    return report(digest, begun);
}
