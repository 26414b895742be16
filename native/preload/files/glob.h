/* Patterns of file names. */
#ifndef GLOB_H
#define GLOB_H

/* Whether an absolute name fits a pattern: `*` stands for any letters but `/`, `**` for any, `?` for one but `/`, `[ab]`,
 * `[a-z]` and `[!a]` for one of a set, `\` takes the next letter as it is. A pattern without `/` is about the last part
 * of the name. Takes no lock and no memory. */
int glob_fits(const char *pattern, const char *name);

#endif
