/* Words of a text against a dictionary of names: open addressing, a name is counted when it is counted. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { SLOTS = 1 << 15, NAMES = 21000, WORDS = 400000, LONGEST = 24 };

struct name {
	uint32_t hash;
	uint32_t count;
	char text[LONGEST];
	char origin[56];
	uint64_t first_seen, last_seen;
	char remark[24];
};

struct dictionary {
	struct name *slots;
};

struct word {
	char text[LONGEST];
};

static uint64_t seed = 2463534242u;

static uint32_t rnd(void)
{
	seed = seed * 6364136223846793005ull + 1442695040888963407ull;
	return (uint32_t)(seed >> 33);
}

static uint32_t hash(const char *s)
{
	uint32_t h = 2166136261u;
	for (; *s; s++)
		h = (h ^ (unsigned char)*s) * 16777619u;
	h ^= h >> 15;
	h *= 0x85EBCA6Bu;
	return h | 1;
}

/* A word that sounds like one: letters follow each other as in a table of pairs, drafts that sound badly are dropped. */
static void invent(char *to, int drafts)
{
	static const char vowel[] = "aeiouy", other[] = "bcdfghklmnprstvz";
	int best = -1;
	for (int d = 0; d < drafts; d++) {
		char draft[LONGEST];
		int n = 4 + rnd() % 9, score = 0;
		for (int i = 0; i < n; i++) {
			draft[i] = (i + n) & 1 ? vowel[rnd() % 6] : other[rnd() % 16];
			if (i > 1)
				score += draft[i] != draft[i - 2] ? 2 : -3;
		}
		memset(draft + n, 0, LONGEST - n);
		if (score > best) {
			best = score;
			memcpy(to, draft, LONGEST);
		}
	}
}

static void dictionary_new(struct dictionary *d)
{
	d->slots = aligned_alloc(4096, SLOTS * sizeof *d->slots);
	memset(d->slots, 0, SLOTS * sizeof *d->slots);
}

static int enter(struct dictionary *d, const char *text, uint32_t day)
{
	uint32_t h = hash(text), at = h >> 17;
	for (; d->slots[at].hash; at = (at + 1) % SLOTS)
		if (d->slots[at].hash == h)
			return 0;
	struct name *n = &d->slots[at];
	d->slots[at].hash = h;
	memcpy(n->text, text, LONGEST);
	n->first_seen = day;
	return 1;
}

static int count(struct dictionary *d, const char *text)
{
	uint32_t h = hash(text), at = h >> 17;
	for (; d->slots[at].hash; at = (at + 1) % SLOTS)
		if (d->slots[at].hash == h && !strcmp(d->slots[at].text, text)) {
			d->slots[at].count++;
			return 1;
		}
	return 0;
}

int main(int argc, char **argv)
{
	int rounds = argc > 1 ? atoi(argv[1]) : 18;
	struct dictionary d;
	dictionary_new(&d);
	struct word *text = calloc(WORDS, sizeof *text);
	for (uint32_t n = 0, day = 0; n < NAMES; day++) {
		char name[LONGEST];
		invent(name, 2);
		n += enter(&d, name, day);
	}
	for (int i = 0; i < WORDS; i++)
		invent(text[i].text, 14);
	uint64_t counted = 0, digest = 0;
	for (int r = 0; r < rounds; r++)
		for (int i = 0; i < WORDS; i++)
			counted += count(&d, text[i].text);
	for (int i = 0; i < SLOTS; i++)
		digest = digest * 31 + d.slots[i].count + d.slots[i].first_seen;
	printf("counted %llu digest %016llx\n", (unsigned long long)counted, (unsigned long long)digest);
}
