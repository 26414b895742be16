// A counting filter of 48 MB that keys are looked up in, each at a place of its own: the probes do not wait for one another.
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

enum { CELLS = 48 << 20, PROBES = 6000000 };

static uint64_t mixed(uint64_t key)
{
    key ^= key >> 33;
    key *= 0xff51afd7ed558ccdull;
    key ^= key >> 33;
    key *= 0xc4ceb9fe1a85ec53ull;
    return key ^ key >> 33;
}

__attribute__((noinline)) uint64_t probe_filter(const uint8_t *cells, uint64_t probes)
{
    uint64_t seen = 0;
    for (uint64_t key = 0; key < probes; key++)
        seen += cells[mixed(key) % CELLS];
    return seen;
}

int main(void)
{
    uint8_t *cells = malloc(CELLS);
    for (uint64_t at = 0; at < CELLS; at++)
        cells[at] = at % 3;
    printf("%lu\n", probe_filter(cells, PROBES));
    free(cells);
}
