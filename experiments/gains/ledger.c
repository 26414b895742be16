/* SPDX-License-Identifier: MIT OR Apache-2.0
 *
 * Accounts, one at the beginning of each page, name the account to go on with, and each visit changes the balance: the
 * next address waits for this one's line, and a store follows each load. The twin's accounts lie on all sets of the
 * first level.
 *
 * SIZE: thousands of visits. */
#include "../recall/planted.h"

enum { ACCOUNTS = 90 };

struct account {
    struct account *next;
    uint64_t balance;
};

HOT uint64_t visit(struct account *a, uint64_t visits) {
    uint64_t sum = 0;
    for (uint64_t i = 0; i < visits; i++, a = a->next)
        sum += a->balance += i;
    return sum;
}

int main(int argc, char **argv) {
    uint64_t visits = argument(argc, argv, 1, 1 << 30) * 1000;
    char *pages = memory(PAGE, (ACCOUNTS + 1) * PAGE);
    struct account *account[ACCOUNTS];
    for (uint64_t i = 0; i < ACCOUNTS; i++)
        account[i] = (struct account *)(pages + i * PAGE + (TWINNED ? i % L1_SETS * LINE : 0));
    for (uint64_t i = 0; i < ACCOUNTS; i++)
        account[i * 37 % ACCOUNTS]->next = account[(i + 1) * 37 % ACCOUNTS];
    uint64_t begun = now_ns();
    return report(visit(account[0], visits), begun);
}
