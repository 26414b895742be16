/* A call is known by its return address: the function that it lies in, or the call instruction that ends just before
 * it. A function that jumps to memcpy as its last act leaves its own caller's return address, so that the caller is
 * what is seen here, in the trace and in a debugger. The owner of a return address is remembered in a small table. */
#include "sites.h"
#include "../kit/kit.h"
#include "places.h"
#include <errno.h>
#include <stdatomic.h>
#include <unwind.h>

static unsigned site_count;
static int any_names_caller;

/* Callers of a site's function that are no caller of the site's, and were reported; a few show enough. */
#define MOST_CALLERS 4
static unsigned noted[MOST_SITES];

unsigned learn_sites(const char *text)
{
	site_count = learn_places(text);
	for (unsigned i = 0; i < site_count; i++)
		any_names_caller |= names_caller(i);
	return site_count;
}

/* The frames of a call, innermost first, until the one behind the frame that returns to `returns`. */
struct frames {
	uintptr_t returns, caller;
	int seen;
};

static _Unwind_Reason_Code next_frame(struct _Unwind_Context *context, void *given)
{
	struct frames *frames = given;
	uintptr_t at = _Unwind_GetIP(context);
	if (frames->seen) {
		frames->caller = at;
		return _URC_END_OF_STACK;
	}
	frames->seen = at == frames->returns;
	return _URC_NO_REASON;
}

static uintptr_t caller_of(uintptr_t returns)
{
	struct frames frames = { .returns = returns };
	_Unwind_Backtrace(next_frame, &frames);
	return frames.caller;
}

/* Verdicts: a key in the upper 56 bits, the site's number and 2 in the lower 8, 1 for no site. Threads that write one
 * entry at a time write the same or evict one another. */
#define VERDICTS 1024
#define PROBES 4
static _Atomic uint64_t verdicts[VERDICTS];

static uint64_t key_of(uintptr_t returns, uintptr_t caller)
{
	uint64_t key = returns + caller * 0x9e3779b97f4a7c15ull;
	return key << 8;
}

static _Atomic uint64_t *verdict_at(uint64_t key, unsigned probe)
{
	return &verdicts[(((key >> 8) * 0x9e3779b1u >> 12) + probe) % VERDICTS];
}

static int remembered(uint64_t key, int *site)
{
	for (unsigned i = 0; i < PROBES; i++) {
		uint64_t verdict = atomic_load_explicit(verdict_at(key, i), memory_order_relaxed);
		if ((verdict & ~0xffull) == key && verdict) {
			*site = (int)(verdict & 0xff) - 2;
			return 1;
		}
	}
	return 0;
}

static void remember(uint64_t key, int site)
{
	unsigned probe = 0;
	while (probe < PROBES - 1 && atomic_load_explicit(verdict_at(key, probe), memory_order_relaxed))
		probe++;
	atomic_store_explicit(verdict_at(key, probe), key | (uint64_t)(site + 2), memory_order_relaxed);
}

/* A user who names a wrong caller sees by it which the right ones are. */
static void note_caller(unsigned site, uintptr_t caller)
{
	char name[NEARMISS_NOTE_WORDS * 8];
	if (noted[site] < MOST_CALLERS) {
		noted[site]++;
		report_note(site, caller && name_place(caller, name, sizeof name) ? name : "?");
	}
}

static int judge(uintptr_t returns, uintptr_t caller)
{
	for (unsigned i = 0; i < site_count; i++) {
		if (!is_from(returns, i, 0))
			continue;
		if (!names_caller(i) || is_from(caller, i, 1))
			return (int)i;
		note_caller(i, caller);
	}
	return NO_SITE;
}

int site_of(uintptr_t returns)
{
	int site = NO_SITE;
	/* Frames are walked only where some site names a caller: it takes a microsecond. */
	uintptr_t caller = any_names_caller ? caller_of(returns) : 0;
	uint64_t key = key_of(returns, caller);
	if (remembered(key, &site))
		return site;
	int before = errno;
	int known = learn_place(returns) & (!caller || learn_place(caller));
	site = judge(returns, caller);
	if (known)
		remember(key, site);
	errno = before;
	return site;
}
