/* A frame of 48 MiB goes past the caches whole, and is read from its begin on afterwards: no cache would have kept it. */
#include <emmintrin.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#define WORDS (6u << 20)
#define ROUNDS 6

__attribute__((noinline)) static void render(long long *frame, long long seed)
{
    for (size_t i = 0; i < WORDS; i++)
        _mm_stream_si64(&frame[i], (long long)i * seed);
}

__attribute__((noinline)) static uint64_t digest(const long long *frame)
{
    uint64_t sum = 0;
    for (size_t i = 0; i < WORDS; i++)
        sum += (uint64_t)frame[i] ^ i;
    return sum;
}

int main(void)
{
    long long *frame = aligned_alloc(4096, WORDS * sizeof *frame);
    uint64_t sum = 0;
    for (long long round = 1; round <= ROUNDS; round++) {
        render(frame, round);
        sum += digest(frame);
    }
    printf("%llu\n", (unsigned long long)sum);
    free(frame);
    return 0;
}
