/* Whole lines are written by stores that go past the caches, and the bytes before the first and behind the last whole
 * line by ordinary ones: a line that is written in part would have to be read, or goes to memory in eight pieces.
 *
 * A store past the caches is not ordered with other stores, which every x86 program takes for granted. Therefore each
 * copy ends with sfence. Before it, the CPU that copies sees its own stores in order, so that a signal handler which
 * leaves the copy (a source that cannot be read) sees what memcpy would have shown it: some of the bytes written. */
#include "streams.h"

/* The compiler must not turn the loops below into calls of what they implement. */
#pragma GCC optimize("no-tree-loop-distribute-patterns")

#if defined(__x86_64__)
#include <immintrin.h>

/* How far ahead of the loads the source is prefetched. The hardware's own prefetcher stops at the end of a page and has
 * to learn each page anew; so far ahead the next page has been prefetched when the loads come to it. */
#define AHEAD_BYTES (16 * LINE_BYTES)

/* Lines of a turn. Two lines leave the write-combining buffers to whole lines, for any width of the stores. */
#define TURN_BYTES (2 * LINE_BYTES)

struct stores {
	unsigned bytes;
	/* `lines` whole lines to an address at a line's begin. */
	void (*copy)(char *to, const char *from, size_t lines);
	void (*fill)(char *to, int byte, size_t lines);
};

static inline void prefetch_ahead(const char *from)
{
	/* It may prefetch beyond the source's end; a prefetch never faults. */
	__builtin_prefetch(from + AHEAD_BYTES, 0, 0);
	__builtin_prefetch(from + AHEAD_BYTES + LINE_BYTES, 0, 0);
}

/* One definition a width: the compiler unrolls the inner loop, of 4, 8 or 2 stores a turn. */
#define DEFINE_STORES(width, vector, load, store, spread, architecture)                                        \
	__attribute__((target(architecture))) static void copy_##width(char *to, const char *from, size_t lines) \
	{                                                                                                        \
		enum { A_TURN = TURN_BYTES / sizeof(vector) };                                                   \
		for (; lines >= 2; lines -= 2, to += TURN_BYTES, from += TURN_BYTES) {                           \
			vector held[A_TURN];                                                                     \
			prefetch_ahead(from);                                                                         \
			for (unsigned i = 0; i < A_TURN; i++)                                                    \
				held[i] = load((const void *)(from + i * sizeof(vector)));                       \
			for (unsigned i = 0; i < A_TURN; i++)                                                    \
				store((void *)(to + i * sizeof(vector)), held[i]);                               \
		}                                                                                                \
		for (unsigned i = 0; lines && i < A_TURN / 2; i++)                                               \
			store((void *)(to + i * sizeof(vector)), load((const void *)(from + i * sizeof(vector)))); \
	}                                                                                                        \
	__attribute__((target(architecture))) static void fill_##width(char *to, int byte, size_t lines)         \
	{                                                                                                        \
		vector value = spread((char)byte);                                                               \
		for (size_t i = 0; i < lines * (LINE_BYTES / sizeof(vector)); i++)                               \
			store((void *)(to + i * sizeof(vector)), value);                                         \
	}

DEFINE_STORES(16, __m128i, _mm_loadu_si128, _mm_stream_si128, _mm_set1_epi8, "sse2")
DEFINE_STORES(32, __m256i, _mm256_loadu_si256, _mm256_stream_si256, _mm256_set1_epi8, "avx")
DEFINE_STORES(64, __m512i, _mm512_loadu_si512, _mm512_stream_si512, _mm512_set1_epi8, "avx512f")

static const struct stores *stores;

unsigned choose_stores(unsigned most_bytes)
{
	static struct stores chosen;
	/* Here and not in an initializer: addresses in initialized data are there only after relocation. */
	__builtin_cpu_init();
	if (most_bytes >= 64 && __builtin_cpu_supports("avx512f"))
		chosen = (struct stores){ 64, copy_64, fill_64 };
	else if (most_bytes >= 32 && __builtin_cpu_supports("avx"))
		chosen = (struct stores){ 32, copy_32, fill_32 };
	else
		chosen = (struct stores){ 16, copy_16, fill_16 };
	stores = &chosen;
	return chosen.bytes;
}

/* Fewer than a line's bytes, by ordinary stores. */
static inline void copy_bytes(char *to, const char *from, size_t bytes)
{
	__asm__ volatile("rep movsb" : "+D"(to), "+S"(from), "+c"(bytes) : : "memory");
}

static inline void fill_bytes(char *to, int byte, size_t bytes)
{
	__asm__ volatile("rep stosb" : "+D"(to), "+c"(bytes) : "a"(byte) : "memory");
}

static inline size_t before_first_line(const void *to)
{
	return -(uintptr_t)to % LINE_BYTES;
}

void stream_copy(void *to, const void *from, size_t bytes)
{
	char *target = to;
	const char *source = from;
	size_t head = before_first_line(to), lines = (bytes - head) / LINE_BYTES;
	copy_bytes(target, source, head);
	stores->copy(target + head, source + head, lines);
	head += lines * LINE_BYTES;
	copy_bytes(target + head, source + head, bytes - head);
	_mm_sfence();
}

void stream_fill(void *to, int byte, size_t bytes)
{
	char *target = to;
	size_t head = before_first_line(to), lines = (bytes - head) / LINE_BYTES;
	fill_bytes(target, byte, head);
	stores->fill(target + head, byte, lines);
	head += lines * LINE_BYTES;
	fill_bytes(target + head, byte, bytes - head);
	_mm_sfence();
}

#else

unsigned choose_stores(unsigned most_bytes)
{
	(void)most_bytes;
	return 0;
}

void stream_copy(void *to, const void *from, size_t bytes)
{
	char *target = to;
	const char *source = from;
	while (bytes--)
		*target++ = *source++;
}

void stream_fill(void *to, int byte, size_t bytes)
{
	char *target = to;
	while (bytes--)
		*target++ = (char)byte;
}

#endif
