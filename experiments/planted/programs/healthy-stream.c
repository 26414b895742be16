/* Sensor archive: streams over 160 MB of samples, smoothing each channel and tracking extremes. */
#define _GNU_SOURCE
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <stdint.h>
int main(void)
{
    size_t n = 40u << 20;
    float *a = aligned_alloc(2 << 20, n * sizeof *a);
    madvise(a, n * sizeof *a, MADV_HUGEPAGE);
    uint32_t s = 1;
    for (size_t i = 0; i < n; i++) { s = s * 1664525 + 1013904223; a[i] = (float)(s >> 8); }
    double tot = 0;
    for (int pass = 0; pass < 26; pass++) {
        float mx = 0, mn = 1e30f; double sum = 0;
        for (size_t i = 0; i < n; i += 4) {
            float v = a[i] + a[i + 1] * 0.5f + a[i + 2] * 0.25f + a[i + 3];
            if (v > mx) mx = v;
            if (v < mn) mn = v;
            sum += v;
        }
        tot = tot * 0.5 + sum + mx - mn;
    }
    printf("%.3f\n", tot);
    return 0;
}
