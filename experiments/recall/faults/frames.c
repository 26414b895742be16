/* SPDX-License-Identifier: MIT OR Apache-2.0
 *
 * A film is graded frame by frame. Each frame is decoded into a picture of 34 MiB and graded into another one, and both
 * are freed. The C library maps blocks of more than 32 MiB one by one, so every frame faults in all its pages anew.
 * The twin keeps both pictures for the next frame.
 *
 * SIZE: frames.
 *
 *: half = "third"
 *: kind = "keep"
 *: names = ["new_picture", "decode_frame", "grade_frame", "one_frame"]
 *: reach = "outside"
 *: traced = 15
 *: measured = 15
 */
#include "../planted.h"

enum { WIDTH = 4096, HEIGHT = 2160, PIXELS = WIDTH * HEIGHT, TILE = 1 << 12 };

static uint32_t coded[TILE];
static uint8_t curve[3][256];

HOT uint32_t *new_picture(void) {
    uint32_t *picture = malloc(PIXELS * sizeof *picture);
    if (!picture)
        planted_fail("not enough memory");
    return picture;
}

/* Every tile is the coded one with another brightness. */
HOT void decode_frame(uint32_t *picture, uint32_t frame) {
    for (uint32_t at = 0; at < PIXELS; at += TILE)
        for (uint32_t i = 0; i < TILE; i++)
            picture[at + i] = coded[i] + (frame + at / TILE) * 0x010101u;
}

HOT void grade_frame(uint32_t *graded, const uint32_t *picture) {
    for (uint32_t i = 0; i < PIXELS; i++)
        graded[i] = (uint32_t)curve[0][picture[i] >> 16 & 255] << 16 | (uint32_t)curve[1][picture[i] >> 8 & 255] << 8
                    | curve[2][picture[i] & 255];
}

HOT uint64_t sum_of(const uint32_t *picture) {
    uint64_t sum = 0;
    for (uint32_t i = 0; i < PIXELS; i += 16)
        sum += picture[i];
    return sum;
}

HOT uint64_t one_frame(uint32_t frame) {
    static uint32_t *kept[2];
    uint32_t *picture = kept[0] ? kept[0] : new_picture(), *graded = kept[1] ? kept[1] : new_picture();
    decode_frame(picture, frame);
    grade_frame(graded, picture);
    uint64_t sum = sum_of(graded);
    if (TWINNED) {
        kept[0] = picture;
        kept[1] = graded;
    } else {
        free(graded);
        free(picture);
    }
    return sum;
}

int main(int argc, char **argv) {
    uint64_t frames = argument(argc, argv, 1, 1 << 20), digest = 0;
    uint64_t begun = now_ns();
    for (uint32_t i = 0; i < TILE; i++)
        coded[i] = (uint32_t)mix(i + 1) & 0x7f7f7fu;
    for (uint32_t i = 0; i < 256; i++)
        for (uint32_t color = 0; color < 3; color++)
            curve[color][i] = (uint8_t)(i * (512 - i) >> (8 + color % 2));
    for (uint64_t frame = 0; frame < frames; frame++)
        digest = mix(digest + one_frame((uint32_t)frame));
    return report(digest, begun);
}
