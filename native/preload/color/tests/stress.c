/* Forks and signals in the middle of everything: threads start threads and allocate, a timer
 * fires all along, and children forked meanwhile go on allocating and starting threads. */
#define _GNU_SOURCE
#include "check.h"
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/time.h>
#include <sys/wait.h>

static atomic_int stop;
static atomic_long signals;

static void on_alarm(int signal)
{
	(void)signal;
	int before = errno;
	atomic_fetch_add(&signals, 1);
	errno = before;
}

static void *brief(void *argument)
{
	char *block = malloc(300000);
	memset(block, 3, 300000);
	free(block);
	return argument;
}

static void *busy(void *argument)
{
	while (!atomic_load(&stop)) {
		pthread_t thread;
		char *block = malloc(8192);
		block[8191] = 1;
		if (pthread_create(&thread, NULL, brief, NULL) == 0)
			pthread_join(thread, NULL);
		free(realloc(block, 200000));
	}
	return argument;
}

static void in_child(char *argv0, char *from_parent, int round)
{
	CHECK(from_parent[0] == 9);
	free(from_parent);
	for (int i = 0; i < 20; i++)
		busy(NULL); /* stop is set */
	brief(NULL);
	pthread_t thread;
	CHECK(pthread_create(&thread, NULL, brief, NULL) == 0);
	pthread_join(thread, NULL);
	if (round % 8 == 0)
		execl(argv0, argv0, "child", NULL);
	_exit(0);
}

int main(int argc, char **argv)
{
	if (argc > 1)
		return brief(NULL) != NULL;
	struct sigaction action = { .sa_handler = on_alarm };
	struct itimerval every_ms = { { 0, 1000 }, { 0, 1000 } };
	pthread_t threads[3];
	sigaction(SIGALRM, &action, NULL);
	setitimer(ITIMER_REAL, &every_ms, NULL);
	for (int i = 0; i < 3; i++)
		CHECK(pthread_create(&threads[i], NULL, busy, NULL) == 0);
	for (int round = 0; round < 40; round++) {
		char *block = malloc(500000);
		block[0] = 9;
		pid_t child = fork();
		if (child == 0) {
			atomic_store(&stop, 1);
			in_child(argv[0], block, round);
		}
		CHECK(child > 0);
		int status;
		while (waitpid(child, &status, 0) < 0)
			CHECK(errno == EINTR);
		CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 0);
		free(block);
	}
	atomic_store(&stop, 1);
	for (int i = 0; i < 3; i++)
		pthread_join(threads[i], NULL);
	CHECK(atomic_load(&signals) > 0);
	return 0;
}
