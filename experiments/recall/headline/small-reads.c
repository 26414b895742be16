/* SPDX-License-Identifier: MIT OR Apache-2.0
 *
 * A file of 4 MiB is read over and over in `slurp`: the kernel's copy on its behalf takes the time.
 *
 *: names = ["slurp"]
 *: size = 30
 */
#include "../planted.h"

enum { FILE_BYTES = 4 << 20, PART = 64 << 10 };

static char text[PART];

HOT uint64_t slurp(FILE *file) {
    uint64_t sum = 0;
    rewind(file);
    while (fread(text, 1, PART, file) == PART)
        sum += (uint8_t)text[sum % PART];
    return sum;
}

int main(int argc, char **argv) {
    uint64_t times = argument(argc, argv, 1, 1 << 20), sum = 0;
    FILE *file = tmpfile();
    if (!file)
        planted_fail("cannot make a temporary file");
    setvbuf(file, NULL, _IONBF, 0);
    for (int i = 0; i < FILE_BYTES / PART; i++) {
        memset(text, i, PART);
        fwrite(text, 1, PART, file);
    }
    uint64_t begun = now_ns();
    for (uint64_t i = 0; i < times; i++)
        sum += slurp(file);
    return report(sum, begun);
}
