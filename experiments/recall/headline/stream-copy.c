/* SPDX-License-Identifier: MIT OR Apache-2.0
 *
 * Frames of 8 MiB are copied in `copy_frame`, again and again.
 *
 *: names = ["copy_frame", "frame_in", "frame_out"]
 *: size = 8
 */
#include "../planted.h"

enum { WORDS = 1 << 20 };

static uint64_t frame_in[WORDS], frame_out[WORDS];

HOT void copy_frame(uint64_t salt) {
    for (uint64_t i = 0; i < WORDS; i++)
        frame_out[i] = frame_in[i] + salt;
}

int main(int argc, char **argv) {
    uint64_t frames = argument(argc, argv, 1, 1 << 20);
    for (uint64_t i = 0; i < WORDS; i++)
        frame_in[i] = i;
    uint64_t begun = now_ns();
    for (uint64_t i = 0; i < frames; i++)
        copy_frame(i);
    return report(frame_out[WORDS / 2], begun);
}
