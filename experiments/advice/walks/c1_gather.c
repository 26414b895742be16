/* Random gather: the indices are read in sequence, so the misses do not wait for each other. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#define TABLE 8000000u
#define PICKS 4000000u

__attribute__((noinline)) static double gather_sum(const float *a, const uint32_t *idx, size_t n)
{
    double s = 0;
    for (size_t i = 0; i < n; i++)
        s += a[idx[i]];
    return s;
}

int main(void)
{
    float *a = malloc(TABLE * sizeof *a);
    uint32_t *idx = malloc(PICKS * sizeof *idx);
    uint64_t s = 4;
    for (uint32_t i = 0; i < TABLE; i++)
        a[i] = (float)((i * 2654435761u) >> 16);
    for (uint32_t i = 0; i < PICKS; i++) {
        s = s * 6364136223846793005ull + 1442695040888963407ull;
        idx[i] = (uint32_t)(s >> 33) % TABLE;
    }
    double sum = 0;
    for (int k = 0; k < 3; k++)
        sum += gather_sum(a, idx + k, PICKS - 3);
    printf("%.0f\n", sum);
    return 0;
}
