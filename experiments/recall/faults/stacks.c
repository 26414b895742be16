/* SPDX-License-Identifier: MIT OR Apache-2.0
 *
 * Thirty-two threads each hold a frame at the same depth of their stacks, and readers scan all frames, again and again.
 * Stacks are mapped alike, so equal frames lie in the same sets. The twin's threads hold their frames at unlike depths.
 *
 * SIZE: thousands of lines read a reader. SHAPE: lines of a frame, readers (the second reader is on another CPU).
 *
 *: kind = "crowd"
 *: names = ["scan_frames"]
 *: reach = "outside"
 *: pieces = 32
 *: traced = 1500
 *: measured = 60000
 *: [[case]]
 *: shape = [4, 1]
 *: [[case]]
 *: shape = [12, 1]
 *: [[case]]
 *: shape = [20, 1]
 *: [[case]]
 *: shape = [4, 2]
 *: [[case]]
 *: shape = [12, 2]
 *: [[case]]
 *: shape = [20, 2]
 */
#include "../planted.h"

enum { HOLDERS = 32, MOST_LINES = 24, LINE_WORDS = LINE / 8, MOST_READERS = 2 };

static pthread_barrier_t ready, over;
static uint64_t *frames[HOLDERS], lines, sums[MOST_READERS][2 * LINE_WORDS];

HOT void hold_frame(uint64_t self, uint64_t *frame) {
    for (uint64_t line = 0; line < lines; line++)
        frame[line * LINE_WORDS] = mix(self * MOST_LINES + line);
    frames[self] = frame;
    pthread_barrier_wait(&ready);
    pthread_barrier_wait(&over);
}

static void *holder(void *self) {
    uint64_t deeper = TWINNED ? (uintptr_t)self * lines % L1_SETS * LINE_WORDS : 0;
    uint64_t frame[deeper + lines * LINE_WORDS];
    hold_frame((uintptr_t)self, frame);
    return NULL;
}

HOT uint64_t scan_frames(void) {
    uint64_t sum = 0;
    for (int i = 0; i < HOLDERS; i++)
        for (uint64_t line = 0; line < lines; line++)
            sum += frames[i][line * LINE_WORDS];
    return sum;
}

static void reader(unsigned self, uint64_t rounds) {
    uint64_t sum = 0;
    for (uint64_t round = 0; round < rounds; round++)
        sum = mix(sum + scan_frames());
    sums[self][0] = sum;
}

int main(int argc, char **argv) {
    uint64_t reads = argument(argc, argv, 1, 1 << 30) * 1000;
    lines = argument(argc, argv, 2, MOST_LINES);
    unsigned readers = (unsigned)argument(argc, argv, 3, MOST_READERS);
    pthread_t handle[HOLDERS];
    pthread_barrier_init(&ready, NULL, HOLDERS + 1);
    pthread_barrier_init(&over, NULL, HOLDERS + 1);
    for (uintptr_t i = 0; i < HOLDERS; i++)
        if (pthread_create(&handle[i], NULL, holder, (void *)i) != 0)
            planted_fail("cannot start a thread");
    pthread_barrier_wait(&ready);
    uint64_t begun = now_ns();
    on_threads(readers, reader, reads / (HOLDERS * lines));
    int status = report(sums[0][0] + sums[1][0], begun);
    pthread_barrier_wait(&over);
    for (int i = 0; i < HOLDERS; i++)
        pthread_join(handle[i], NULL);
    return status;
}
