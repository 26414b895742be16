/* A small session server in simulation: timers fire, sessions answer each other, credits move. */
#define _GNU_SOURCE
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { SESSIONS = 640, BUF = 3072 };

struct session {
	uint32_t state, peer;
	uint64_t deadline;
	int64_t credit;
	uint32_t sent, received;
	uint32_t used;
	unsigned char buf[BUF];
};

static struct session *table[SESSIONS];
static uint64_t seed = 88172645463325252ull;

static uint32_t rnd(void)
{
	seed ^= seed << 13;
	seed ^= seed >> 7;
	seed ^= seed << 17;
	return (uint32_t)(seed >> 16);
}

/* The buffer is handed to the network card, so sessions begin at pages. */
static struct session *session_new(uint32_t id)
{
	void *p;
	if (posix_memalign(&p, 4096, sizeof(struct session)))
		abort();
	struct session *s = p;
	memset(s, 0, sizeof *s);
	s->credit = 1000 + id;
	s->peer = rnd() % SESSIONS;
	return s;
}

static uint32_t deliver(struct session *s, uint32_t from, uint64_t now)
{
	s->received++;
	switch (s->state) {
	case 0:
		s->state = 1;
		s->deadline = now + 40;
		break;
	case 1:
		if (s->deadline < now) {
			s->state = 2;
			s->credit -= 3;
		} else {
			s->credit += 1;
		}
		break;
	default:
		s->state = 0;
		s->used = (s->used + 16) % BUF;
		if ((s->received & 63) == 0)
			s->buf[s->used] = (unsigned char)from;
	}
	uint32_t to = (s->peer * 5 + (uint32_t)s->credit + s->received * 7) % SESSIONS;
	s->sent++;
	return to;
}

int main(int argc, char **argv)
{
	uint64_t events = argc > 1 ? strtoull(argv[1], 0, 0) : 50000000;
	for (uint32_t i = 0; i < SESSIONS; i++)
		table[i] = session_new(i);
	uint32_t at[4] = {0, 1, 2, 3};
	for (uint64_t t = 0; t < events; t++) {
		uint32_t from = at[t & 3];
		uint32_t to = deliver(table[from], (uint32_t)t & 255, t >> 6);
		at[t & 3] = (to + (uint32_t)(t >> 3)) % SESSIONS;
	}
	uint64_t sum = 0;
	for (int i = 0; i < SESSIONS; i++) {
		sum = sum * 31 + (uint64_t)table[i]->credit + table[i]->received * 17u + table[i]->state;
		for (int k = 0; k < BUF; k++)
			sum += table[i]->buf[k];
	}
	printf("sessions %d events %llu digest %016llx\n", SESSIONS, (unsigned long long)events, (unsigned long long)sum);
}
