/* Documents come in as text, become a tree of nodes, are summed a few times, and go. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum kind { NUMBER, STRING, LIST };

struct node {
	enum kind kind;
	uint32_t count;
	struct node *child, *last, *next;
	union {
		double number;
		char *text;
	};
};

static const char *at;

static struct node *parse(void)
{
	struct node *n = calloc(1, sizeof *n);
	if (*at == '[') {
		n->kind = LIST;
		at++;
		while (*at != ']') {
			struct node *c = parse();
			if (n->last)
				n->last->next = c;
			else
				n->child = c;
			n->last = c;
			n->count++;
			if (*at == ',')
				at++;
		}
		at++;
	} else if (*at == '"') {
		const char *end = strchr(at + 1, '"');
		size_t length = end - at - 1;
		n->kind = STRING;
		n->text = malloc(length + 1);
		memcpy(n->text, at + 1, length);
		n->text[length] = 0;
		at = end + 1;
	} else {
		n->kind = NUMBER;
		double v = 0;
		while (*at >= '0' && *at <= '9')
			v = v * 10 + (*at++ - '0');
		n->number = v;
	}
	return n;
}

static double mean_of(const struct node *n)
{
	double v = 0;
	switch (n->kind) {
	case NUMBER:
		return n->number;
	case STRING:
		return (double)strlen(n->text);
	default:
		for (const struct node *c = n->child; c; c = c->next)
			v += mean_of(c) / n->count;
		return v;
	}
}

static void discard(struct node *n)
{
	if (n->kind == STRING)
		free(n->text);
	for (struct node *c = n->child, *next; c; c = next) {
		next = c->next;
		discard(c);
	}
	free(n);
}

static char *document(uint32_t seed, int size)
{
	char *text = malloc((size_t)size * 40 + 64), *p = text;
	*p++ = '[';
	for (int i = 0; i < size; i++) {
		seed = seed * 1664525 + 1013904223;
		if (i)
			*p++ = ',';
		switch (seed >> 30) {
		case 0:
			p += sprintf(p, "%u", seed >> 12);
			break;
		case 1:
			p += sprintf(p, "\"key-%u-of-a-record\"", seed >> 8);
			break;
		default:
			p += sprintf(p, "[%u,\"v%u\",%u]", seed >> 20, seed >> 16, (seed >> 10) & 255);
		}
	}
	*p++ = ']';
	*p = 0;
	return text;
}

int main(int argc, char **argv)
{
	int rounds = argc > 1 ? atoi(argv[1]) : 400;
	char *text[4];
	for (int i = 0; i < 4; i++)
		text[i] = document(77 + i, 12000 + 2000 * i);
	double sum = 0;
	for (int r = 0; r < rounds; r++) {
		char *received = strdup(text[r & 3]);
		at = received;
		struct node *tree = parse();
		for (int q = 0; q < 8; q++)
			sum += mean_of(tree) * q;
		discard(tree);
		free(received);
	}
	printf("documents %d sum %.6f\n", rounds, sum);
}
