/* A random sequence of file operations in a directory: what each returned, its errno, the positions, and a sum of the
 * bytes. The same seed prints the same, with anything between the program and the kernel.
 * random DIRECTORY SEED OPERATIONS */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/sendfile.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

/* The errors are intended. */
#pragma GCC diagnostic ignored "-Wstringop-overread"

#define UNTOUCHED 77
#define MOST (6 << 20)
#define FILES 6
#define PIPE_READ FILES
#define PIPE_WRITE (FILES + 1)
#define CLOSED (FILES + 2)
#define DESCRIPTORS (FILES + 3)

static const struct {
	const char *name;
	int flags;
} files[FILES] = {
	{ "one", O_RDWR },   { "one", O_RDWR | O_APPEND }, { "two", O_RDWR },
	{ "two", O_RDONLY }, { "three", O_WRONLY },        { "three", O_RDONLY },
};

static int fds[DESCRIPTORS];
static const char *directory;
static char *buffer, *given;
static uint64_t state;

static uint64_t draw(uint64_t below)
{
	state ^= state << 13;
	state ^= state >> 7;
	state ^= state << 17;
	return state % below;
}

static uint64_t sum(const void *bytes, size_t count)
{
	const unsigned char *at = bytes;
	uint64_t hash = 14695981039346656037u;
	for (size_t i = 0; i < count; i++)
		hash = (hash ^ at[i]) * 1099511628211u;
	return hash;
}

/* Around the sizes at which something changes: pages, the least of RWF_DONTCACHE, windows. */
static size_t draw_size(void)
{
	static const size_t sizes[] = { 1, 100, 4095, 4096, 4097, 10000, 65535, 65536, 65537, 131072, 300000, 1 << 20, 5 << 20 };
	return draw(3) ? sizes[draw(9)] : sizes[draw(sizeof sizes / sizeof *sizes)];
}

static off_t draw_offset(void)
{
	return (off_t)(draw(4) ? draw(2 << 20) : draw(3) * 4096 * draw(1500));
}

static void open_file(int i)
{
	char name[4096];
	snprintf(name, sizeof name, "%s/%s", directory, files[i].name);
	int fd = open(name, files[i].flags | O_CREAT, 0600);
	if (fd < 0)
		exit(3);
	fds[i] = fd;
}

static void print_result(const char *what, long long returned, int error, const void *bytes)
{
	printf("%s %lld %d", what, returned, error);
	if (bytes && returned > 0)
		printf(" %016llx", (unsigned long long)sum(bytes, (size_t)returned));
	for (int i = 0; i < FILES; i++)
		printf(" %lld", (long long)lseek(fds[i], 0, SEEK_CUR));
	putchar('\n');
}

#define TRY(what, bytes, call)                          \
	do {                                                \
		errno = UNTOUCHED;                              \
		long long returned = (long long)(call);         \
		print_result(what, returned, errno, bytes);              \
	} while (0)

/* Three parts of the buffer, of which the middle one may be empty. */
static void split(struct iovec parts[3], char *whole, size_t bytes)
{
	size_t first = draw(bytes + 1), second = draw(2) ? 0 : draw(bytes - first + 1);
	parts[0] = (struct iovec){ whole, first };
	parts[1] = (struct iovec){ whole + first, second };
	parts[2] = (struct iovec){ whole + first + second, bytes - first - second };
}

static void fill(size_t bytes)
{
	uint64_t from = draw(1 << 20);
	for (size_t i = 0; i < bytes; i += 8) {
		uint64_t word = (from + i) * 0x9e3779b97f4a7c15u;
		memcpy(given + i, &word, 8);
	}
}

static void reads(int fd)
{
	size_t bytes = draw_size();
	struct iovec parts[3];
	split(parts, buffer, bytes);
	memset(buffer, 0, bytes);
	switch (draw(5)) {
	case 0:
	case 1:
		TRY("read", buffer, read(fd, buffer, bytes));
		break;
	case 2:
		TRY("pread", buffer, pread(fd, buffer, bytes, draw_offset()));
		break;
	case 3:
		TRY("readv", buffer, readv(fd, parts, 3));
		break;
	default:
		TRY("preadv2", buffer, preadv2(fd, parts, 3, draw(2) ? -1 : draw_offset(), 0));
	}
}

static void writes(int fd)
{
	size_t bytes = draw_size();
	struct iovec parts[3];
	split(parts, given, bytes);
	fill(bytes);
	switch (draw(6)) {
	case 0:
	case 1:
		TRY("write", NULL, write(fd, given, bytes));
		break;
	case 2:
		TRY("pwrite", NULL, pwrite(fd, given, bytes, draw_offset()));
		break;
	case 3:
		TRY("writev", NULL, writev(fd, parts, 3));
		break;
	case 4:
		TRY("pwritev2", NULL, pwritev2(fd, parts, 3, draw(2) ? -1 : draw_offset(), draw(2) ? 0 : RWF_APPEND));
		break;
	default:
		TRY("pwritev", NULL, pwritev(fd, parts, 3, draw_offset()));
	}
}

static void drain(void)
{
	long long bytes;
	while ((bytes = read(fds[PIPE_READ], buffer, MOST)) > 0)
		printf("drained %lld %016llx\n", bytes, (unsigned long long)sum(buffer, (size_t)bytes));
}

static void copies(int in, int out)
{
	off_t from = draw_offset(), to = draw_offset(), *in_offset = draw(2) ? &from : NULL, *out_offset = draw(2) ? &to : NULL;
	size_t bytes = draw_size();
	switch (draw(5)) {
	case 0:
	case 1:
		TRY("copy_file_range", NULL, copy_file_range(in, in_offset, out, out_offset, bytes, draw(9) ? 0 : 1));
		break;
	case 2:
		TRY("sendfile", NULL, sendfile(out, in, in_offset, bytes));
		break;
	case 3:
		TRY("sendfile to a pipe", NULL, sendfile(fds[PIPE_WRITE], in, in_offset, bytes));
		break;
	default:
		TRY("splice", NULL, splice(in, in_offset, fds[PIPE_WRITE], NULL, bytes, SPLICE_F_NONBLOCK));
		TRY("splice", NULL, splice(fds[PIPE_READ], NULL, out, out_offset, bytes, SPLICE_F_NONBLOCK));
	}
	printf("offsets %lld %lld\n", (long long)from, (long long)to);
	drain();
}

static void wrong(int fd)
{
	struct iovec bad[2] = { { buffer, 10 }, { (void *)16, 70000 } };
	switch (draw(9)) {
	case 0:
		TRY("read to nowhere", NULL, read(fd, (void *)16, draw_size()));
		break;
	case 1:
		TRY("write from nowhere", NULL, write(fd, (void *)16, draw_size()));
		break;
	case 2:
		TRY("pread at -1", NULL, pread(fd, buffer, 70000, -1));
		break;
	case 3:
		TRY("pwrite at -1", NULL, pwrite(fd, given, 70000, -1));
		break;
	case 4:
		TRY("readv of nothing", NULL, readv(fd, (struct iovec *)16, 2));
		break;
	case 5:
		TRY("writev partly from nowhere", NULL, writev(fd, bad, 2));
		break;
	case 6:
		TRY("readv of too many", NULL, readv(fd, bad, 5000));
		break;
	case 7:
		TRY("copy at nowhere", NULL, copy_file_range(fd, (off_t *)16, fds[4], NULL, 70000, 0));
		break;
	default:
		TRY("read of a closed", NULL, read(fds[CLOSED], buffer, 70000));
	}
}

static void seeks(int i)
{
	if (draw(4))
		TRY("lseek", NULL, lseek(fds[i], draw_offset(), draw(3) ? SEEK_SET : SEEK_CUR));
	else
		TRY("lseek", NULL, lseek(fds[i], -(off_t)draw(200000), SEEK_END));
}

/* Another descriptor takes the number's place. */
static void reopens(int i)
{
	int number = fds[i], other = (int)draw(FILES);
	switch (draw(3)) {
	case 0:
		TRY("dup2", NULL, dup2(fds[other], number) == number);
		break;
	case 1:
		TRY("close", NULL, close(number));
		open_file(i);
		break;
	default:
		TRY("ftruncate", NULL, ftruncate(fds[i], draw_offset()));
	}
}

static void buffered(int i)
{
	char name[4096], line[300];
	snprintf(name, sizeof name, "%s/%s", directory, files[i].name);
	FILE *file = fopen(name, draw(2) ? "r+" : "a+");
	if (!file)
		exit(3);
	setvbuf(file, NULL, _IOFBF, 4096); /* errors come at the same byte on every file system */
	fseeko(file, draw_offset(), SEEK_SET);
	for (int n = (int)draw(20); n > 0; n--) {
		memset(line, 0, sizeof line);
		TRY("fgets", NULL, fgets(line, sizeof line, file) != NULL);
		printf("%016llx\n", (unsigned long long)sum(line, sizeof line));
	}
	size_t bytes = draw_size();
	TRY("fread", buffer, fread(buffer, 1, bytes, file));
	fseeko(file, draw_offset(), SEEK_SET);
	fill(bytes);
	TRY("fwrite", NULL, fwrite(given, 1, bytes, file));
	TRY("fputs", NULL, fputs("a line\n", file) >= 0);
	TRY("fclose", NULL, fclose(file));
}

/* A child goes on with the same descriptors. */
static void child(int fd)
{
	fflush(stdout);
	pid_t pid = fork();
	if (pid == 0) {
		for (int n = 0; n < 5; n++)
			draw(2) ? reads(fd) : writes(fd);
		exit(0);
	}
	int status;
	waitpid(pid, &status, 0);
	printf("child %d\n", status);
}

static void step(void)
{
	int i = (int)draw(draw(8) ? FILES : DESCRIPTORS - 1), j = (int)draw(FILES), fd = fds[i];
	switch (draw(16)) {
	case 0:
	case 1:
	case 2:
	case 3:
		reads(fd);
		break;
	case 4:
	case 5:
	case 6:
	case 7:
		writes(fd);
		break;
	case 8:
	case 9:
		copies(fd, fds[j]);
		break;
	case 10:
		wrong(fd);
		break;
	case 11:
	case 12:
		seeks(j);
		break;
	case 13:
		reopens(j);
		break;
	case 14:
		buffered(j);
		break;
	default:
		if (draw(4) == 0)
			child(fd);
	}
	drain();
}

static void print_files(void)
{
	for (int i = 0; i < FILES; i += 2) {
		char name[4096];
		struct stat about;
		snprintf(name, sizeof name, "%s/%s", directory, files[i].name);
		FILE *file = fopen(name, "r");
		if (!file || fstat(fileno(file), &about) != 0)
			exit(3);
		uint64_t hash = 0;
		for (size_t got; (got = fread(buffer, 1, MOST, file)) > 0;)
			hash = hash * 31 + sum(buffer, got);
		printf("%s: %lld bytes, %016llx\n", files[i].name, (long long)about.st_size, (unsigned long long)hash);
		fclose(file);
		unlink(name);
	}
}

int main(int count, char **words)
{
	int ends[2];
	if (count < 4)
		return 2;
	directory = words[1];
	state = strtoull(words[2], NULL, 10) * 0x9e3779b97f4a7c15u | 1;
	buffer = malloc(MOST);
	given = malloc(MOST);
	if (!buffer || !given || pipe2(ends, O_NONBLOCK) != 0)
		return 3;
	fds[PIPE_READ] = ends[0];
	fds[PIPE_WRITE] = ends[1];
	fds[CLOSED] = 900;
	for (int i = 0; i < FILES; i++)
		open_file(i);
	for (int n = atoi(words[3]); n > 0; n--)
		step();
	print_files();
	return 0;
}
