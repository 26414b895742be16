#include "glob.h"
#include <string.h>

/* Whether the set at `pattern`, behind its `[`, has the letter; where the pattern goes on. NULL: it never ends. */
static const char *set_has(const char *pattern, char letter, int *has)
{
	int negated = *pattern == '!' || *pattern == '^';
	const char *at = pattern + negated, *first = at;
	*has = 0;
	while (*at && (*at != ']' || at == first)) {
		char from = *at, to = from;
		if (at[1] == '-' && at[2] && at[2] != ']') {
			to = at[2];
			at += 2;
		}
		*has |= (unsigned char)from <= (unsigned char)letter && (unsigned char)letter <= (unsigned char)to;
		at++;
	}
	*has ^= negated;
	return *at ? at + 1 : NULL;
}

/* One letter of the name against one of the pattern: where the pattern goes on, or NULL. */
static const char *one_fits(const char *pattern, char letter)
{
	int has;
	const char *rest;
	switch (*pattern) {
	case '?':
		return letter != '/' ? pattern + 1 : NULL;
	case '[':
		rest = set_has(pattern + 1, letter, &has);
		if (!rest)
			return letter == '[' ? pattern + 1 : NULL;
		return has && letter != '/' ? rest : NULL;
	case '\\':
		if (pattern[1])
			return pattern[1] == letter ? pattern + 2 : NULL;
		/* fall through */
	default:
		return *pattern == letter ? pattern + 1 : NULL;
	}
}

/* The last star alone is ever tried again, but a `**` before a `*` is: two places to return to are enough. */
static int all_fits(const char *pattern, const char *name)
{
	const char *star = NULL, *star_at = NULL, *deep = NULL, *deep_at = NULL;
	while (*name || *pattern) {
		if (pattern[0] == '*' && pattern[1] == '*') {
			deep = pattern += 2;
			deep_at = name;
			star = NULL;
			continue;
		}
		if (*pattern == '*') {
			star = ++pattern;
			star_at = name;
			continue;
		}
		const char *rest = *name && *pattern ? one_fits(pattern, *name) : NULL;
		if (rest) {
			pattern = rest;
			name++;
		} else if (star && *star_at && *star_at != '/') {
			pattern = star;
			name = ++star_at;
		} else if (deep && *deep_at) {
			pattern = deep;
			name = ++deep_at;
			star = NULL;
		} else {
			return 0;
		}
	}
	return 1;
}

int glob_fits(const char *pattern, const char *name)
{
	const char *last = strrchr(name, '/');
	return all_fits(pattern, strchr(pattern, '/') || !last ? name : last + 1);
}
