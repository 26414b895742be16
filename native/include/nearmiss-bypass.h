/* nearmiss-bypass.h: copies and fills that go past the CPU's caches, for what will not be read again soon. C99 and C++.
 *
 * An ordinary copy brings every line that it writes into the caches, and there the line takes the place of one that may
 * be needed again. A log record, a page that waits for the disk or a frame for another device is not read again before
 * it is pushed out itself. Such a copy may go past the caches:
 *
 *     nearmiss_bypass_copy(page, record, sizeof record);     // as memcpy
 *     nearmiss_bypass_fill(frame, 0, frame_bytes);           // as memset
 *
 * Do not use them where the target is read soon: the reader then fetches each line from memory. Nor where target and
 * what else is used fit the caches together, nor for less than some lines (512 bytes). The copy's reads still come
 * through the caches. `nearmiss rehearse bypass` predicts what a copy would gain or lose.
 *
 * Source and target must not overlap. On CPUs without such stores (any but x86-64), these are memcpy and memset. The
 * bytes written are ordered before later stores, as by every store of x86.
 *
 * Licence: MIT OR Apache-2.0. */
#ifndef NEARMISS_BYPASS_H
#define NEARMISS_BYPASS_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

#define NEARMISS_BYPASS_LINE 64

#if defined(__x86_64__) || defined(_M_X64)
#include <emmintrin.h>

/* Only whole lines go past the caches: a part of one would be several transactions, or a read and a write. Returns how
 * many bytes lie before the first whole line of the target, and in *lines the number of whole lines. */
static inline size_t nearmiss_bypass_lines(const void *to, size_t bytes, size_t *lines)
{
	size_t before = (size_t)(-(uintptr_t)to % NEARMISS_BYPASS_LINE);
	*lines = bytes < before ? 0 : (bytes - before) / NEARMISS_BYPASS_LINE;
	return *lines ? before : bytes;
}

static inline void *nearmiss_bypass_copy(void *to, const void *from, size_t bytes)
{
	char *target = (char *)to;
	const char *source = (const char *)from;
	size_t lines, at = nearmiss_bypass_lines(to, bytes, &lines);
	memcpy(target, source, at);
	for (; lines; lines--, at += NEARMISS_BYPASS_LINE) {
		const __m128i *line = (const __m128i *)(source + at);
		__m128i a = _mm_loadu_si128(line), b = _mm_loadu_si128(line + 1);
		__m128i c = _mm_loadu_si128(line + 2), d = _mm_loadu_si128(line + 3);
		/* So far ahead that memory has answered when the loads come to it; a prefetch never faults. */
		_mm_prefetch((const char *)line + 16 * NEARMISS_BYPASS_LINE, _MM_HINT_NTA);
		_mm_stream_si128((__m128i *)(target + at), a);
		_mm_stream_si128((__m128i *)(target + at) + 1, b);
		_mm_stream_si128((__m128i *)(target + at) + 2, c);
		_mm_stream_si128((__m128i *)(target + at) + 3, d);
	}
	memcpy(target + at, source + at, bytes - at);
	_mm_sfence();
	return to;
}

static inline void *nearmiss_bypass_fill(void *to, int byte, size_t bytes)
{
	char *target = (char *)to;
	__m128i value = _mm_set1_epi8((char)byte);
	size_t lines, at = nearmiss_bypass_lines(to, bytes, &lines);
	memset(target, byte, at);
	for (; lines; lines--, at += NEARMISS_BYPASS_LINE)
		for (size_t part = 0; part < NEARMISS_BYPASS_LINE; part += sizeof value)
			_mm_stream_si128((__m128i *)(target + at + part), value);
	memset(target + at, byte, bytes - at);
	_mm_sfence();
	return to;
}

#else

static inline void *nearmiss_bypass_copy(void *to, const void *from, size_t bytes)
{
	return memcpy(to, from, bytes);
}

static inline void *nearmiss_bypass_fill(void *to, int byte, size_t bytes)
{
	return memset(to, byte, bytes);
}

#endif
#endif
