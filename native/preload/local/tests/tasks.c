/* Prints on which CPU each kind of new task may run when it begins; with an argument, a while after it began. */
#define _GNU_SOURCE
#include <pthread.h>
#include <sched.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <threads.h>
#include <unistd.h>

extern char **environ;
static int late;

static void print_cpus(const char *what)
{
	cpu_set_t set;
	if (late)
		usleep(300000);
	if (sched_getaffinity(0, sizeof set, &set) < 0)
		exit(1);
	int first = 0;
	while (!CPU_ISSET(first, &set))
		first++;
	char text[64];
	int length = snprintf(text, sizeof text, "%s %d of %d\n", what, first, CPU_COUNT(&set));
	if (write(1, text, (size_t)length) != length)
		exit(1);
}

static void *thread(void *unused)
{
	print_cpus("thread");
	return unused;
}

static int c11(void *unused)
{
	(void)unused;
	print_cpus("c11");
	return 0;
}

static void spawn(const char *program)
{
	char *arguments[] = { (char *)program, late ? "spawned-late" : "spawned", NULL };
	pid_t child;
	if (posix_spawn(&child, program, NULL, NULL, arguments, environ) != 0 || waitpid(child, NULL, 0) < 0)
		exit(1);
}

int main(int argc, char **argv)
{
	late = argc > 1 && strstr(argv[1], "late") != NULL;
	if (argc > 1 && strncmp(argv[1], "spawned", 7) == 0) {
		print_cpus("spawned");
		return 0;
	}
	print_cpus("main");
	pthread_t posix;
	thrd_t other;
	if (pthread_create(&posix, NULL, thread, NULL) != 0)
		return 1;
	pthread_join(posix, NULL);
	if (thrd_create(&other, c11, NULL) != thrd_success)
		return 1;
	thrd_join(other, NULL);
	pid_t child = fork();
	if (child == 0) {
		print_cpus("forked");
		execl(argv[0], argv[0], late ? "spawned-late" : "spawned", NULL);
		_exit(1);
	}
	waitpid(child, NULL, 0);
	spawn(argv[0]);
	spawn(argv[0]);
	return 0;
}
