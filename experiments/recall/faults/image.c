/* SPDX-License-Identifier: MIT OR Apache-2.0
 *
 * A grey image 4,096 pixels wide and 256 high, smoothed in place along its columns. The lines of a column lie in one
 * set of the first level; each is wanted by the next 63 columns and is gone. The twin's rows are a line longer.
 *
 * SIZE: thousands of pixels smoothed.
 *
 *: kind = "crowd"
 *: names = ["smooth_column", "image"]
 *: reach = "inside"
 *: pieces = 256
 *: traced = 1500
 *: measured = 30000
 */
#include "../planted.h"

enum { WIDTH = 4096, HEIGHT = 256, STRIDE = WIDTH + TWINNED * LINE };

static alignas(PAGE) uint8_t image[HEIGHT * STRIDE];

HOT void smooth_column(uint64_t x) {
    unsigned above = image[x];
    for (uint64_t y = 1; y < HEIGHT; y++) {
        above = (3 * above + image[y * STRIDE + x] + 2) / 4;
        image[y * STRIDE + x] = (uint8_t)above;
    }
}

int main(int argc, char **argv) {
    uint64_t pixels = argument(argc, argv, 1, 1 << 30) * 1000, digest = 0;
    for (uint64_t y = 0; y < HEIGHT; y++)
        for (uint64_t x = 0; x < WIDTH; x++)
            image[y * STRIDE + x] = (uint8_t)mix(y * WIDTH + x);
    uint64_t begun = now_ns();
    for (uint64_t column = 0; column < pixels / HEIGHT; column++)
        smooth_column(column % WIDTH);
    for (uint64_t y = 0; y < HEIGHT; y++)
        digest = mix(digest + image[y * STRIDE + y]);
    return report(digest, begun);
}
