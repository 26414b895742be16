/* A block of 8 KiB goes past the caches, and its energy is summed at once. */
#include <emmintrin.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#define SAMPLES 4096
#define ROUNDS 12000

__attribute__((noinline)) static void scale_block(int16_t *out, const int16_t *in, int16_t gain)
{
    __m128i by = _mm_set1_epi16(gain);
    for (int i = 0; i < SAMPLES; i += 8)
        _mm_stream_si128((__m128i *)(out + i), _mm_mullo_epi16(_mm_load_si128((const __m128i *)(in + i)), by));
}

__attribute__((noinline)) static int64_t energy(const int16_t *block)
{
    int64_t sum = 0;
    for (int i = 0; i < SAMPLES; i++)
        sum += (int64_t)block[i] * block[i];
    return sum;
}

int main(void)
{
    int16_t *in = aligned_alloc(4096, SAMPLES * sizeof *in), *out = aligned_alloc(4096, SAMPLES * sizeof *out);
    int64_t sum = 0;
    for (int i = 0; i < SAMPLES; i++)
        in[i] = (int16_t)(i * 40503);
    for (int round = 0; round < ROUNDS; round++) {
        scale_block(out, in, (int16_t)round);
        sum += energy(out);
    }
    printf("%lld\n", (long long)sum);
    free(in);
    free(out);
    return 0;
}
