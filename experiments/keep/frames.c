/* SPDX-License-Identifier: MIT OR Apache-2.0
 *
 * Thumbnails: a picture of 36 MiB is unpacked from runs of one color, scaled down, and freed. Each picture is a mapping
 * of its own, too large for the threshold that glibc raises by itself. */
#include "work.h"

enum { WIDTH = 3072, HEIGHT = 3072, STEP = 16, RUN = 512 };

static void unpack(uint32_t *picture, uint64_t seed)
{
    for (size_t at = 0; at < (size_t)WIDTH * HEIGHT; at += RUN) {
        uint32_t color = (uint32_t)mix(seed + at);
        for (size_t pixel = 0; pixel < RUN; pixel++)
            picture[at + pixel] = color;
    }
}

static uint64_t scale_down(const uint32_t *picture)
{
    uint64_t checksum = 0;
    for (size_t row = 0; row < HEIGHT; row++)
        for (size_t column = 0; column < WIDTH; column += STEP) {
            uint64_t sum = 0;
            for (size_t pixel = 0; pixel < STEP; pixel++)
                sum += picture[row * WIDTH + column + pixel] & 255;
            checksum = checksum * 31 + sum / STEP;
        }
    return checksum;
}

int main(int argc, char **argv)
{
    size_t pictures = amount_of_work(argc, argv, 10);
    uint64_t checksum = 0;
    uint32_t *picture = NULL;
    for (size_t number = 0; number < pictures; number++) {
        if (!picture)
            picture = (uint32_t *)allocated(malloc(sizeof *picture * WIDTH * HEIGHT));
        unpack(picture, number);
        checksum = mix(checksum + scale_down(picture));
        if (!KEEPS) {
            free(picture);
            picture = NULL;
        }
    }
    free(picture);
    return print_checksum(checksum);
}
