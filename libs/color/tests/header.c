/* Prints the header's results for addresses on standard input: piece line colors bit address. */
#include "nearmiss-color.h"
#include <stdio.h>

int main(void)
{
	unsigned long piece, line, colors, bit, address;
	printf("requested %lu\n", (unsigned long)nearmiss_colors_asked());
	while (scanf("%lu %lu %lu %lu %lu", &piece, &line, &colors, &bit, &address) == 5) {
		struct nearmiss_coloring coloring = nearmiss_coloring_from(piece, line, colors, (unsigned)bit);
		printf("%lu %lu %lu\n", (unsigned long)nearmiss_color(&coloring, (void *)address),
		       (unsigned long)nearmiss_color_piece(&coloring, (void *)address),
		       (unsigned long)nearmiss_color_room(&coloring));
	}
	return 0;
}
