/* Two workers read an access log and keep figures. */
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { WORKERS = 2 };

struct figures {
	uint64_t lines, bytes;
	uint32_t errors, longest;
	uint64_t methods;
};

struct log {
	char *text;
	size_t length;
	int rounds;
};

struct run {
	struct figures figures[WORKERS];
	struct log parts[WORKERS];
};

static struct run *run;

static void generate(struct log *l, size_t lines, uint32_t seed)
{
	static const char *method[] = {"GET", "PUT", "POST", "HEAD"};
	static const char *path[] = {"/", "/a", "/img/7", "/x?q=1", "/api/v2"};
	l->text = malloc(lines * 40);
	char *p = l->text;
	for (size_t i = 0; i < lines; i++) {
		seed = seed * 1664525 + 1013904223;
		p += sprintf(p, "%s %s %d %u\n", method[seed >> 30], path[(seed >> 20) % 5], (seed >> 12) % 9 ? 200 : 503,
			     (seed >> 8) % 5000);
	}
	l->length = p - l->text;
}

static __attribute__((noinline)) void account(struct figures *f, char method, uint32_t status, uint32_t bytes, uint32_t length)
{
	f->lines++;
	f->bytes += bytes;
	if (status >= 500)
		f->errors++;
	if (length > f->longest)
		f->longest = length;
	f->methods += (uint64_t)1 << ((method & 3) * 8);
}

static void *work(void *arg)
{
	int me = (int)(intptr_t)arg;
	const struct log *l = &run->parts[me];
	for (int round = 0; round < l->rounds; round++)
		for (const char *p = l->text, *end = p + l->length; p < end;) {
			const char *begin = p;
			char method = *p;
			while (*p++ != ' ')
				;
			while (*p++ != ' ')
				;
			uint32_t status = 0, bytes = 0;
			while (*p != ' ')
				status = status * 10 + (*p++ - '0');
			p++;
			while (*p != '\n')
				bytes = bytes * 10 + (*p++ - '0');
			p++;
			account(&run->figures[me], method, status, bytes, (uint32_t)(p - begin));
		}
	return 0;
}

int main(int argc, char **argv)
{
	int rounds = argc > 1 ? atoi(argv[1]) : 3000;
	pthread_t t[WORKERS];
	run = aligned_alloc(128, (sizeof *run + 127) / 128 * 128);
	memset(run, 0, sizeof *run);
	for (int i = 0; i < WORKERS; i++) {
		generate(&run->parts[i], 5000, 7 + i);
		run->parts[i].rounds = rounds;
	}
	for (int i = 0; i < WORKERS; i++)
		pthread_create(&t[i], 0, work, (void *)(intptr_t)i);
	struct figures all = {0};
	for (int i = 0; i < WORKERS; i++) {
		pthread_join(t[i], 0);
		const struct figures *f = &run->figures[i];
		all.lines += f->lines;
		all.bytes += f->bytes;
		all.errors += f->errors;
		all.methods += f->methods;
		if (f->longest > all.longest)
			all.longest = f->longest;
	}
	printf("lines %llu bytes %llu errors %u longest %u methods %016llx\n", (unsigned long long)all.lines,
	       (unsigned long long)all.bytes, all.errors, all.longest, (unsigned long long)all.methods);
}
