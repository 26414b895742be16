/* SPDX-License-Identifier: MIT OR Apache-2.0
 *
 * A wave equation of high order on a grid with rows of 4 KiB: a new point reads as many rows above, below, before
 * and behind it as the radius has. With radius 4 these are 17 rows, with radius 6 they are 25, and all lie in one set
 * of the first level. The twin's rows are a line longer, and its planes three lines more.
 *
 * SIZE: rows of points computed. SHAPE: the radius.
 *
 *: half = "second"
 *: kind = "crowd"
 *: names = ["propagate_row", "wave_field"]
 *: reach = "inside"
 *: traced = 80
 *: measured = 15000
 *: [[case]]
 *: shape = [4]
 *: [[case]]
 *: shape = [6]
 *: traced = 55
 *: measured = 9000
 */
#include "../planted.h"

enum { X = 1024, Y = 20, Z = 20, MOST_RADIUS = 6 };
enum { ROW = X + TWINNED * LINE / 4, PLANE = Y * ROW + TWINNED * 3 * LINE / 4 };

static alignas(PAGE) float wave_field[Z * PLANE], next[X];
static const float weight[MOST_RADIUS + 1] = {0.25f, 0.08f, 0.02f, 0.01f, 0.005f, 0.002f, 0.001f};

HOT void propagate_row(uint64_t y, uint64_t z, uint64_t radius) {
    float *row = wave_field + z * PLANE + y * ROW;
    for (uint64_t x = radius; x < X - radius; x++) {
        float sum = weight[0] * row[x];
        for (uint64_t d = 1; d <= radius; d++) {
            const float *above = row + x - d * PLANE, *below = row + x + d * PLANE;
            const float *before = row + x - d * ROW, *behind = row + x + d * ROW;
            sum += weight[d] * (*above + *below + *before + *behind + row[x - d] + row[x + d]);
        }
        next[x] = sum;
    }
    for (uint64_t x = radius; x < X - radius; x++)
        row[x] = next[x] * 0.9f;
}

int main(int argc, char **argv) {
    uint64_t rows = argument(argc, argv, 1, 1 << 30), radius = argument(argc, argv, 2, MOST_RADIUS), digest = 0;
    for (uint64_t z = 0; z < Z; z++)
        for (uint64_t y = 0; y < Y; y++)
            for (uint64_t x = 0; x < X; x++)
                wave_field[z * PLANE + y * ROW + x] = (float)(mix(z * Y * X + y * X + x) & 1023);
    uint64_t begun = now_ns(), deep = Z - 2 * radius, wide = Y - 2 * radius;
    for (uint64_t i = 0; i < rows; i++)
        propagate_row(radius + i % wide, radius + i / wide % deep, radius);
    for (uint64_t x = 0; x < X; x++)
        digest = mix(digest + (uint64_t)(wave_field[radius * PLANE + radius * ROW + x] * 1024));
    return report(digest, begun);
}
