/* SPDX-License-Identifier: MIT OR Apache-2.0
 *
 * Preloaded into the command inside the guest: reports every heap object and thread stack to the tap, by a mailbox and
 * a trigger. The allocator is the program's own; what is done here besides is left out of the recording. Harmless
 * outside a guest, where triggers do nothing. Programs that are static or bring their allocator in the executable are
 * not seen.
 */
#define _GNU_SOURCE
#include "nearmiss_tap.h"
#include "nearmiss_trigger.h"

#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#define EXPORT __attribute__((visibility("default")))
#define TEXT_OF(x) #x
#define TEXT(x) TEXT_OF(x)

/* ---- the mailbox ------------------------------------------------------------------------------------------------- */

/* One place a thread, so that the tap finds it in a pause too, when it sees no stores. */
static __thread struct nearmiss_mailbox mail __attribute__((tls_model("initial-exec"), aligned(64)));

static __attribute__((noinline)) void report(enum nm_heap_op operation, const void *address, size_t size,
                                             const void *old, size_t alignment)
{
    NEARMISS_TRIGGER(NEARMISS_TRIGGER_SKIP_ON);
    mail.operation = operation;
    mail.address = (uintptr_t)address;
    mail.size = size;
    mail.old_address = (uintptr_t)old;
    mail.alignment = alignment;
    mail.stack = (uintptr_t)__builtin_dwarf_cfa() - sizeof(uint64_t);
    volatile uint64_t proof = mail.sequence + 1;
    mail.proof = (uintptr_t)&proof;
    /* The trigger right behind the store: the tap finds the mailbox by the last store before it. */
    __asm__ volatile("incq %0\n\t.byte 0x0f, 0x1f, 0x84, 0x00\n\t.long " TEXT(NEARMISS_TRIGGER_HEAP)
                     : "+m"(mail.sequence)
                     : "m"(mail.operation), "m"(mail.address), "m"(mail.size), "m"(mail.old_address),
                       "m"(mail.alignment), "m"(mail.stack), "m"(mail.proof)
                     : "memory");
    NEARMISS_TRIGGER(NEARMISS_TRIGGER_SKIP_OFF);
}

/* ---- the program's own allocator --------------------------------------------------------------------------------- */

static struct {
    void *(*malloc)(size_t);
    void *(*calloc)(size_t, size_t);
    void *(*realloc)(void *, size_t);
    void (*free)(void *);
    int (*posix_memalign)(void **, size_t, size_t);
    void *(*aligned_alloc)(size_t, size_t);
    void *(*memalign)(size_t, size_t);
    void *(*valloc)(size_t);
    void *(*pvalloc)(size_t);
    int (*malloc_trim)(size_t);
    int (*pthread_create)(pthread_t *, const pthread_attr_t *, void *(*)(void *), void *);
} next;

/* Memory allocated while the functions above are looked up: dlsym may allocate. Never given back. */
static _Alignas(16) unsigned char early[16384];
static size_t early_used;
static int looking;

static void *early_block(size_t size)
{
    size_t whole = (size + 31) & ~(size_t)15; /* 16 bytes ahead of the block hold its size */
    if (size > sizeof early || whole > sizeof early - early_used) {
        errno = ENOMEM;
        return NULL;
    }
    unsigned char *at = early + early_used;
    early_used += whole;
    *(size_t *)(void *)at = size;
    return at + 16;
}

static int is_early(const void *block)
{
    return (const unsigned char *)block >= early && (const unsigned char *)block < early + sizeof early;
}

static void look_up(void)
{
    looking = 1;
#define FIND(name) *(void **)&next.name = dlsym(RTLD_NEXT, #name)
    FIND(calloc);
    FIND(realloc);
    FIND(free);
    FIND(posix_memalign);
    FIND(aligned_alloc);
    FIND(memalign);
    FIND(valloc);
    FIND(pvalloc);
    FIND(malloc_trim);
    FIND(pthread_create);
    FIND(malloc);
    looking = 0;
}

/* 1 if the allocator can be called. The loader runs before any thread does, so a plain flag is enough. */
static inline int ready(void)
{
    if (__builtin_expect(next.malloc != NULL, 1))
        return 1;
    if (looking)
        return 0;
    NEARMISS_TRIGGER(NEARMISS_TRIGGER_SKIP_ON);
    look_up();
    NEARMISS_TRIGGER(NEARMISS_TRIGGER_SKIP_OFF);
    return next.malloc != NULL;
}

__attribute__((constructor)) static void start(void) { ready(); }

/* ---- what programs call ------------------------------------------------------------------------------------------ */

EXPORT void *malloc(size_t size)
{
    if (!ready())
        return early_block(size);
    void *block = next.malloc(size);
    if (block)
        report(NM_HEAP_ALLOC, block, size, NULL, 0);
    return block;
}

EXPORT void *calloc(size_t count, size_t size)
{
    size_t bytes;
    if (!ready()) /* the early blocks are zero */
        return __builtin_mul_overflow(count, size, &bytes) ? NULL : early_block(bytes);
    void *block = next.calloc(count, size);
    if (block)
        report(NM_HEAP_ALLOC, block, count * size, NULL, 0);
    return block;
}

EXPORT int malloc_trim(size_t pad)
{
    if (!ready() || !next.malloc_trim)
        return 0;
    const int gave = next.malloc_trim(pad);
    report(NM_HEAP_TRIM, NULL, 0, NULL, 0);
    return gave;
}

EXPORT void free(void *block)
{
    if (!block || is_early(block))
        return;
    int before = errno;
    report(NM_HEAP_FREE, block, 0, NULL, 0);
    if (ready())
        next.free(block);
    errno = before;
}

EXPORT void *realloc(void *old, size_t size)
{
    if (is_early(old) || !ready()) {
        void *block = malloc(size);
        size_t had = old ? *(size_t *)(void *)((unsigned char *)old - 16) : 0;
        if (block && old)
            memcpy(block, old, had < size ? had : size);
        return block;
    }
    void *block = next.realloc(old, size);
    if (block)
        report(old ? NM_HEAP_REALLOC : NM_HEAP_ALLOC, block, size, old, 0);
    else if (old && size == 0)
        report(NM_HEAP_FREE, old, 0, NULL, 0);
    return block;
}

EXPORT void *reallocarray(void *old, size_t count, size_t size)
{
    size_t bytes;
    if (__builtin_mul_overflow(count, size, &bytes)) {
        errno = ENOMEM;
        return NULL;
    }
    return realloc(old, bytes);
}

EXPORT int posix_memalign(void **block, size_t alignment, size_t size)
{
    if (!ready())
        return ENOMEM;
    int error = next.posix_memalign(block, alignment, size);
    if (!error && *block)
        report(NM_HEAP_ALLOC, *block, size, NULL, alignment);
    return error;
}

static void *reported(void *block, size_t size, size_t alignment)
{
    if (block)
        report(NM_HEAP_ALLOC, block, size, NULL, alignment);
    return block;
}

EXPORT void *aligned_alloc(size_t alignment, size_t size)
{
    return ready() && next.aligned_alloc ? reported(next.aligned_alloc(alignment, size), size, alignment) : NULL;
}

EXPORT void *memalign(size_t alignment, size_t size)
{
    return ready() && next.memalign ? reported(next.memalign(alignment, size), size, alignment) : NULL;
}

EXPORT void *valloc(size_t size)
{
    return ready() && next.valloc ? reported(next.valloc(size), size, 4096) : NULL;
}

EXPORT void *pvalloc(size_t size)
{
    return ready() && next.pvalloc ? reported(next.pvalloc(size), (size + 4095) & ~(size_t)4095, 4096) : NULL;
}

/* ---- stacks ------------------------------------------------------------------------------------------------------ */

struct beginning {
    void *(*start)(void *);
    void *argument;
};

static void report_stack(void)
{
    pthread_attr_t attributes;
    void *stack;
    size_t size;
    NEARMISS_TRIGGER(NEARMISS_TRIGGER_SKIP_ON);
    if (pthread_getattr_np(pthread_self(), &attributes) == 0) {
        int error = pthread_attr_getstack(&attributes, &stack, &size);
        pthread_attr_destroy(&attributes);
        if (!error)
            report(NM_HEAP_STACK, stack, size, NULL, 0);
    }
    NEARMISS_TRIGGER(NEARMISS_TRIGGER_SKIP_OFF);
}

static void *begin_thread(void *given)
{
    struct beginning beginning = *(struct beginning *)given;
    next.free(given);
    report_stack();
    return beginning.start(beginning.argument);
}

EXPORT int pthread_create(pthread_t *thread, const pthread_attr_t *attributes, void *(*start_routine)(void *),
                          void *argument)
{
    if (!ready() || !next.pthread_create)
        return EAGAIN;
    struct beginning *beginning = next.malloc(sizeof *beginning);
    if (!beginning)
        return EAGAIN;
    *beginning = (struct beginning){start_routine, argument};
    int error = next.pthread_create(thread, attributes, begin_thread, beginning);
    if (error)
        next.free(beginning);
    return error;
}
