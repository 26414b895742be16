/* SPDX-License-Identifier: GPL-2.0-or-later
 *
 * Touches memory in ways that can be counted by hand; prints where. `subject kinds`, `sharing`, `sweeping`, `turning`,
 * `moving`,
 * `heap`, `recursion` or `code`.
 */
#define _GNU_SOURCE
#include <malloc.h>
#include <pthread.h>
#include <sched.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#define PAGE __attribute__((aligned(4096)))

static PAGE char swept[1 << 20];
static PAGE char vectors[4096];
static PAGE struct {
    volatile uint64_t other[8];  /* brings the page in */
    volatile uint64_t counted[8]; /* both increment it */
    volatile uint64_t read[8];   /* both read it, then one writes it */
    volatile uint64_t passed[8]; /* one writes some bytes, the other reads them */
    volatile uint64_t own[2][8]; /* each its own */
} lines;

static void pin(int cpu)
{
    cpu_set_t set;
    CPU_ZERO(&set);
    CPU_SET(cpu, &set);
    if (sched_setaffinity(0, sizeof set, &set))
        abort();
}

/* 1,000 executions of each; offsets into `vectors`, lines of 64 bytes. */
static void kinds(void)
{
    memset(vectors, 1, sizeof vectors);
    for (int pass = 0; pass < 2; pass++)
        for (size_t i = 0; i < sizeof swept; i += 64)
            *(volatile char *)(swept + i) = 1;
    for (int i = 0; i < 1000; i++) {
        __asm__ volatile("movdqu %%xmm0, 0x38(%0)\n\t"   /* straddles lines 0 and 1: 8 and 8 bytes */
                         "movdqu 0x80(%0), %%xmm1\n\t"   /* line 2: 16 bytes */
                         "movntdq %%xmm0, 0xc0(%0)\n\t"  /* line 3: non-temporal, 16 bytes */
                         "sfence\n\t"
                         "movnti %%rax, 0xd0(%0)\n\t"    /* line 3: non-temporal, 8 bytes */
                         "lock incq 0x100(%0)\n\t"       /* line 4: atomic, and drains */
                         "addq $1, 0x140(%0)\n\t"        /* line 5: load and store */
                         "xchg %%rcx, 0x180(%0)\n\t"     /* line 6: atomic without a prefix */
                         "lock cmpxchg16b 0x1c0(%0)\n\t" /* line 7: 16 bytes, fails */
                         "prefetcht0 0x200(%0)"
                         :
                         : "r"(vectors)
                         : "memory", "xmm0", "xmm1", "rax", "rcx", "rdx");
    }
    printf("swept %p\nvectors %p\n", (void *)swept, (void *)vectors);
}

static pthread_barrier_t barrier;

static void *thread(void *argument)
{
    const int me = (int)(intptr_t)argument;
    pin(me);
    if (me == 0)
        lines.other[0] = 1;
    pthread_barrier_wait(&barrier);
    for (int i = 0; i < 1000; i++)
        (void)lines.read[0];
    for (int i = 0; i < 1000; i++)
        lines.own[me][0]++;
    if (me == 0) {
        lines.passed[1] = 1;
        *((volatile uint32_t *)&lines.passed[3]) = 1;
    }
    pthread_barrier_wait(&barrier);
    if (me == 0)
        lines.read[0] = 1;
    pthread_barrier_wait(&barrier);
    for (int i = 0; i < 1000; i++)
        (void)lines.read[0];
    if (me == 1)
        (void)lines.passed[1];
    pthread_barrier_wait(&barrier);
    for (int i = 0; i < 200000; i++)
        lines.counted[me]++;
    return NULL;
}

static void sharing(void)
{
    pthread_t threads[2];
    pthread_barrier_init(&barrier, NULL, 2);
    for (int i = 0; i < 2; i++)
        pthread_create(&threads[i], NULL, thread, (void *)(intptr_t)i);
    for (int i = 0; i < 2; i++)
        pthread_join(threads[i], NULL);
    for (int node = 0; node < 2; node++) {
        pin(node);
        char *pages = mmap(NULL, 64 << 12, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        for (int i = 0; i < 64; i++)
            *(volatile char *)(pages + (i << 12)) = 1;
        printf("node%d %p\n", node, (void *)pages);
    }
    printf("counted %p\nread %p\npassed %p\nown %p\n", (void *)lines.counted, (void *)lines.read, (void *)lines.passed,
           (void *)lines.own);
}

static PAGE volatile char halves_of_two[2][1 << 19];

static void *sweep(void *half)
{
    for (int turn = 0; turn < 4; turn++)
        for (size_t i = 0; i < sizeof *halves_of_two; i += 64)
            ((volatile char *)half)[i] = 1;
    return NULL;
}

/* Two threads, each on its own half megabyte: 32,768 stores each, on whichever CPU they run. */
static void sweeping(void)
{
    pthread_t other;
    pthread_create(&other, NULL, sweep, (void *)(uintptr_t)halves_of_two[1]);
    sweep((void *)(uintptr_t)halves_of_two[0]);
    pthread_join(other, NULL);
    printf("mine %p\nother %p\n", (void *)(uintptr_t)halves_of_two[0], (void *)(uintptr_t)halves_of_two[1]);
}

/* Never ends: allocates, sweeps, frees, again and again. */
static void turning(void)
{
    printf("mine %p\n", (void *)(uintptr_t)halves_of_two[0]);
    fflush(stdout);
    for (;;) {
        char *block = malloc(5000);
        sweep((void *)(uintptr_t)halves_of_two[0]);
        *(volatile char *)block = 1;
        free(block);
    }
}

static PAGE volatile char carried[16 * 64];

/* One task writes 16 lines 100 times over on one CPU, then on the other; 20 times each. */
static void moving(void)
{
    for (int move = 0; move < 40; move++) {
        pin(move % 2);
        for (int i = 0; i < 100 * 16; i++)
            carried[i % 16 * 64] = 1;
    }
    printf("carried %p\n", (void *)(uintptr_t)carried);
}

static void *stack_of_thread(void *unused) { return unused; }

static void heap(void)
{
    char *a = malloc(1001), *b = calloc(7, 286), *c = aligned_alloc(256, 3072);
    printf("malloc %p\ncalloc %p\naligned %p\n", (void *)a, (void *)b, (void *)c);
    char *d = realloc(a, 400004);
    printf("realloc %p\n", (void *)d);
    free(b);
    free(c);
    free(d);
    pthread_t t;
    pthread_create(&t, NULL, stack_of_thread, NULL);
    pthread_join(t, NULL);
}

static PAGE char leaves[4096 * 64];

/* Calls itself at two places, down to one of 4,096 lines each. */
static __attribute__((noinline)) void halves(char *from, size_t lines)
{
    if (lines == 1) {
        *(volatile char *)from = 1;
        return;
    }
    halves(from, lines / 2);
    halves(from + lines / 2 * 64, lines / 2);
    __asm__ volatile(""); /* so that neither is a jump */
}

static void recursion(void)
{
    halves(leaves, sizeof leaves / 64);
    printf("halves %p\nleaves %p\n", (void *)(uintptr_t)halves, (void *)leaves);
}

static PAGE struct { void *next, *rest[7]; } list[4096];

/* A list of one line a node, to its end. */
__attribute__((noinline, used)) void walk(void);
__asm__(".text\n"
        ".type walk, @function\n"
        "walk: lea list(%rip), %rax\n"
        "0: mov (%rax), %rax\n"
        "test %rax, %rax\n"
        "jne 0b\n"
        "ret\n"
        ".size walk, . - walk");

/* Code that is made while it runs: `mov (%rdi), %eax; add $ADDED, %eax; ret`. */
static void code(void)
{
    for (size_t i = 0; i + 1 < sizeof list / sizeof *list; i++)
        list[i].next = &list[i + 1];
    walk();
    unsigned char *made = mmap(NULL, 4096, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    int number = 1;
    for (int time = 0; time < 3; time++) {
        const unsigned char added = time == 1 ? 2 : 1;
        memcpy(made, (unsigned char[]){0x8b, 0x07, 0x83, 0xc0, added, 0xc3}, 6);
        for (int i = 0; i < 1000; i++)
            if (((int (*)(int *))(uintptr_t)made)(&number) != 1 + added)
                abort();
    }
    printf("walk %p\nlist %p\nmade %p\n", (void *)(uintptr_t)walk, (void *)list, (void *)made);
}

int main(int argc, char **argv)
{
    const char *what = argc > 1 ? argv[1] : "";
    if (!strcmp(what, "kinds"))
        kinds();
    else if (!strcmp(what, "sharing"))
        sharing();
    else if (!strcmp(what, "sweeping"))
        sweeping();
    else if (!strcmp(what, "turning"))
        turning();
    else if (!strcmp(what, "moving"))
        moving();
    else if (!strcmp(what, "heap"))
        heap();
    else if (!strcmp(what, "recursion"))
        recursion();
    else if (!strcmp(what, "code"))
        code();
    else
        return 2;
    return 0;
}
