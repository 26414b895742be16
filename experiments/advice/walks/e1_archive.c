/* Blocks go past the caches into a large ring that nobody reads soon: the right use of such stores. */
#include <emmintrin.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#define RING (64u << 20)
#define BLOCK 4096
#define ROUNDS 60000

__attribute__((noinline)) static void archive(char *to, const char *from)
{
    for (int i = 0; i < BLOCK; i += 16)
        _mm_stream_si128((__m128i *)(to + i), _mm_load_si128((const __m128i *)(from + i)));
}

int main(void)
{
    char *ring = aligned_alloc(4096, RING), *block = aligned_alloc(4096, BLOCK);
    for (int i = 0; i < BLOCK; i++)
        block[i] = (char)i;
    uint64_t sum = 0;
    for (unsigned round = 0; round < ROUNDS; round++) {
        for (int i = 0; i < BLOCK; i++)
            block[i] = (char)(block[i] + (char)(round * 31 + (unsigned)i));
        archive(ring + (size_t)round * BLOCK % RING, block);
        sum += (unsigned char)block[round % BLOCK];
    }
    printf("%llu %d\n", (unsigned long long)sum, ring[12345]);
    free(ring);
    free(block);
    return 0;
}
