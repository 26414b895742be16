/* Copies and fills with stores that go past the caches. */
#ifndef STREAMS_H
#define STREAMS_H

#include <stddef.h>
#include <stdint.h>

/* Bytes of a line, and the least that a copy or fill here may have: below it there may be no whole line. */
#define LINE_BYTES 64
#define LEAST_STREAM_BYTES (2 * LINE_BYTES)

/* Picks the widest stores that this CPU and its kernel have, of `most_bytes` at most; to be called once, before the
 * others. Returns the bytes of a store, 0 where none goes past the caches. */
unsigned choose_stores(unsigned most_bytes);

/* As memcpy, for at least LEAST_STREAM_BYTES that do not overlap. Its writes are ordered before later stores. */
void stream_copy(void *to, const void *from, size_t bytes);

/* As memset, for at least LEAST_STREAM_BYTES. */
void stream_fill(void *to, int byte, size_t bytes);

#endif
