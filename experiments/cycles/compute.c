/* A chain of multiplications and one of additions in doubles, nothing in memory. */
#include <stdio.h>
int main(void)
{
    unsigned long x = 1;
    double y = 1;
    for (int i = 0; i < 30000000; i++) {
        x = x * 6364136223846793005ul + 1442695040888963407ul;
        y = y * 0.999999 + 1e-9;
    }
    printf("%lu %f\n", x, y);
}
