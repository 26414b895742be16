/* Ends well if the header copies and fills as memcpy and memset do: every place in a line, every length. */
#include "nearmiss-bypass.h"

enum { MOST = 400, ROOM = MOST + 2 * NEARMISS_BYPASS_LINE };

static unsigned char source[ROOM], target[ROOM], expected[ROOM];

static int differs(size_t to, size_t from, size_t bytes)
{
	memset(target, 0xee, ROOM);
	memset(expected, 0xee, ROOM);
	memcpy(expected + to, source + from, bytes);
	if (nearmiss_bypass_copy(target + to, source + from, bytes) != target + to || memcmp(target, expected, ROOM) != 0)
		return 1;
	memset(expected + to, (int)bytes, bytes);
	return nearmiss_bypass_fill(target + to, (int)bytes, bytes) != target + to || memcmp(target, expected, ROOM) != 0;
}

int main(void)
{
	for (size_t i = 0; i < ROOM; i++)
		source[i] = (unsigned char)(i * 31 + i / 256);
	for (size_t to = 0; to < NEARMISS_BYPASS_LINE; to++)
		for (size_t from = 0; from < NEARMISS_BYPASS_LINE; from += 7)
			for (size_t bytes = 0; bytes <= MOST; bytes++)
				if (differs(to, from, bytes))
					return 1;
	return 0;
}
