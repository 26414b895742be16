/* SPDX-License-Identifier: MIT OR Apache-2.0
 *
 * A matrix product as textbooks write it: the inner loop walks down a column. When a row is a power of two bytes, a
 * column's elements share few sets and evict each other; --pad widens the rows and cures it. */
#include "subject.h"

#define PRODUCT(name, type)                                                                                            \
    static __attribute__((noinline)) double name(const char *program, uint64_t n, uint64_t width) {                    \
        type *a = subject_memory(program, 4096, n * width * sizeof(type));                                             \
        type *b = subject_memory(program, 4096, n * width * sizeof(type));                                             \
        type *c = subject_memory(program, 4096, n * width * sizeof(type));                                             \
        for (uint64_t i = 0; i < n; i++)                                                                               \
            for (uint64_t j = 0; j < n; j++) {                                                                         \
                a[i * width + j] = (type)((i + j) % 7);                                                                \
                b[i * width + j] = (type)((i * j) % 5);                                                                \
            }                                                                                                          \
        for (uint64_t i = 0; i < n; i++)                                                                               \
            for (uint64_t j = 0; j < n; j++) {                                                                         \
                type sum = 0;                                                                                          \
                for (uint64_t k = 0; k < n; k++)                                                                       \
                    sum += a[i * width + k] * b[k * width + j];                                                        \
                c[i * width + j] = sum;                                                                                \
            }                                                                                                          \
        double trace = 0;                                                                                              \
        for (uint64_t i = 0; i < n; i++)                                                                               \
            trace += (double)c[i * width + i];                                                                         \
        free(a), free(b), free(c);                                                                                     \
        return trace;                                                                                                  \
    }

PRODUCT(product_of_doubles, double)
PRODUCT(product_of_integers, int64_t)

int main(int argc, char **argv) {
    uint64_t n = 256, pad = 0, integer = 0;
    const struct subject_option options[] = {
        {"n", "rows and columns", &n, 0},
        {"pad", "unused elements at the end of each row", &pad, 0},
        {"integer", "64-bit integers instead of doubles", &integer, 1},
        {0},
    };
    subject_options(argc, argv, "A matrix product with an inner loop down a column.", options);
    if (n == 0 || n > 16384 || pad > 16384)
        subject_fail(argv[0], "--n needs 1 to 16384, --pad at most 16384");
    double start = subject_now_ns();
    double trace = integer ? product_of_integers(argv[0], n, n + pad) : product_of_doubles(argv[0], n, n + pad);
    double ns = subject_now_ns() - start;
    printf("matmul: n=%llu pad=%llu type=%s trace=%.0f ns_per_multiplication=%.3f\n", (unsigned long long)n,
           (unsigned long long)pad, integer ? "int64" : "double", trace, ns / ((double)n * n * n));
    return 0;
}
