/* SPDX-License-Identifier: MIT OR Apache-2.0
 *
 * A board of 4 MiB is cleared before every game in `clear_board`, by the C library's memset, and a game sets little.
 *
 *: names = ["clear_board", "memset", "board"]
 *: size = 60
 */
#include "../planted.h"

enum { CELLS = 4 << 20, MOVES = 2000 };

static uint8_t board[CELLS];

HOT void clear_board(void) { memset(board, 0, sizeof board); }

HOT uint64_t play(uint64_t game) {
    uint64_t taken = 0;
    for (uint64_t move = 0; move < MOVES; move++) {
        uint64_t at = mix(game * MOVES + move) % CELLS;
        taken += board[at];
        board[at] = 1;
    }
    return taken;
}

int main(int argc, char **argv) {
    uint64_t games = argument(argc, argv, 1, 1 << 20), sum = 0;
    uint64_t begun = now_ns();
    for (uint64_t game = 0; game < games; game++) {
        clear_board();
        sum += play(game);
    }
    return report(sum, begun);
}
