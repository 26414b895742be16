/* Patterns against names: ends with the number of the first row that is wrong, 0 where none is. */
#include "../glob.h"
#include <stddef.h>
#include <stdio.h>

static const struct {
	const char *pattern, *name;
	int fits;
} rows[] = {
	{ "*.tar", "/srv/a.tar", 1 },
	{ "*.tar", "/srv/a.tar.gz", 0 },
	{ "a.tar", "/srv/a.tar", 1 },
	{ "srv", "/srv/a.tar", 0 },
	{ "*", "/srv/a.tar", 1 },
	{ "/srv/*", "/srv/a.tar", 1 },
	{ "/srv/*", "/srv/x/a.tar", 0 },
	{ "/srv/**", "/srv/x/y/a.tar", 1 },
	{ "**/x/*.tar", "/srv/x/a.tar", 1 },
	{ "**/x/*.tar", "/srv/x/y/a.tar", 0 },
	{ "**/x/**/b*", "/x/a/x/c/b1", 1 },
	{ "**/y/*a*b", "/y/y/xaxb", 1 },
	{ "**/y/*a*b", "/y/y/xaxbc", 0 },
	{ "?.tar", "/srv/a.tar", 1 },
	{ "?.tar", "/srv/ab.tar", 0 },
	{ "/srv?a", "/srv/a", 0 },
	{ "[a-c]?", "/b1", 1 },
	{ "[a-c]?", "/d1", 0 },
	{ "[!a-c]?", "/d1", 1 },
	{ "[!a-c]?", "/b1", 0 },
	{ "[]x]", "/]", 1 },
	{ "[ab", "/[ab", 1 },
	{ "/a[!x]b", "/a/b", 0 },
	{ "\\*a", "/*a", 1 },
	{ "\\*a", "/ba", 0 },
	{ "a\\", "/a\\", 1 },
	{ "*a*a*a*a*a*a*a*a*b", "/aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa", 0 },
	{ "", "/a", 0 },
};

int main(void)
{
	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		if (glob_fits(rows[i].pattern, rows[i].name) != rows[i].fits) {
			printf("%s on %s\n", rows[i].pattern, rows[i].name);
			return (int)i + 1;
		}
	}
	return 0;
}
