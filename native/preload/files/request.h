/* One request on its way to the kernel. */
#ifndef REQUEST_H
#define REQUEST_H

#include "streams.h"
#include <sys/uio.h>

struct request {
	int fd;
	enum direction direction;
	enum way way;
	uint64_t offset, bytes;
	int error_before;
};

/* The kernel does not take the request this way: nothing of it was done. */
#define NOT_TAKEN ((ssize_t)-2)

struct request begin_request(int fd, enum direction direction, uint64_t offset, uint64_t bytes);

/* With an offset as it was given: less than 0 is an error for the kernel to report. */
struct request begin_request_at(int fd, enum direction direction, off_t offset, uint64_t bytes);

/* With flags of the program's own, which stay; an offset of -1 is the position. */
struct request begin_flagged(int fd, enum direction direction, off_t offset, uint64_t bytes, int flags);

/* Whether an error means that the way was wrong, and not the request. */
int is_refusal(int error);

/* Requests the kernel to keep it out of the page cache. NOT_TAKEN: it has to go as it came. */
ssize_t kept_out(struct request *request, const struct iovec *parts, int count);

/* Whether a read is so long that its pages, which windows are to give back, would all be in the page cache before one is.
 * It goes step by step, and its return is `in_steps`'s. */
int is_long(const struct request *request);
ssize_t in_steps(const struct request *request, char *buffer);

/* Bytes of one call of the kernel between two looks at the page cache. */
#define STEP_BYTES ((size_t)16 << 20)

/* Returns what the kernel returned. */
ssize_t end_request(const struct request *request, ssize_t done);

/* Bytes of a vector of a file that is for us; 0 for others, and where the vector cannot be read, which is for the kernel
 * to report. */
uint64_t vector_bytes(int fd, const struct iovec *parts, int count);

/* Copies what the program points at. 0: it points at nothing. */
int fetch(void *to, const void *from, size_t bytes);

#endif
