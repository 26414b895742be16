/* A compositor: tiles of sprites are blitted to a stage, and blended from there with what the screen shows. */
#include <emmintrin.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { W = 512, H = 64, SPRITES = 12 };

static void blit(uint8_t *to, const uint8_t *from, size_t n)
{
	for (size_t i = 0; i < n; i += 64) {
		__m128i a = _mm_load_si128((const __m128i *)(from + i)), b = _mm_load_si128((const __m128i *)(from + i + 16));
		__m128i c = _mm_load_si128((const __m128i *)(from + i + 32)), d = _mm_load_si128((const __m128i *)(from + i + 48));
		_mm_stream_si128((__m128i *)(to + i), a);
		_mm_stream_si128((__m128i *)(to + i + 16), b);
		_mm_stream_si128((__m128i *)(to + i + 32), c);
		_mm_stream_si128((__m128i *)(to + i + 48), d);
	}
	_mm_sfence();
}

static uint64_t blend(const uint8_t *p, uint8_t *screen)
{
	uint64_t sum = 0;
	for (int i = 0; i < W * H; i += 8) {
		uint64_t a, b;
		memcpy(&a, p + i, 8);
		memcpy(&b, screen + i, 8);
		b = (a & b) + (((a ^ b) >> 1) & 0x7f7f7f7f7f7f7f7full);
		memcpy(screen + i, &b, 8);
		sum = (sum ^ b) * 1099511628211ull;
	}
	return sum;
}

int main(int argc, char **argv)
{
	int frames = argc > 1 ? atoi(argv[1]) : 60000;
	uint8_t *sprites = aligned_alloc(64, SPRITES * W * H), *stage = aligned_alloc(64, W * H);
	uint8_t *screen = aligned_alloc(64, W * H);
	uint32_t x = 12345;
	for (int i = 0; i < SPRITES * W * H; i++) {
		x = x * 1103515245 + 12345;
		sprites[i] = (uint8_t)((x >> 16) % 160 + i % 64);
	}
	memset(screen, 0, W * H);
	uint64_t digest = 0;
	for (int f = 0; f < frames; f++) {
		blit(stage, sprites + (size_t)(f * 5 % SPRITES) * W * H, W * H);
		digest = digest * 31 + blend(stage, screen);
	}
	printf("frames %d digest %016llx\n", frames, (unsigned long long)digest);
}
