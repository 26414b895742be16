/* SPDX-License-Identifier: MIT OR Apache-2.0
 *
 * A report over the accounts of a bank: a scan adds up the balances of each branch. An account has 200 bytes, and the
 * branch and the balance stand 168 bytes apart, so that the scan fetches two lines for 12 bytes. The twin has the two
 * fields in an array of their own.
 *
 * SIZE: reports.
 *
 *: half = "third"
 *: kind = "layout"
 *: names = ["add_up_branches", "account", "new_accounts", "balance"]
 *: reach = "inside"
 *: traced = 300
 *: measured = 300
 */
#include "../planted.h"

enum { ACCOUNTS = 200000, BRANCHES = 40 };

struct figures {
    uint32_t branch;
    int64_t balance;
};

struct account {
    uint64_t number;
#ifndef TWIN
    uint32_t branch;
#endif
    uint32_t currency;
    char owner[64], address[96];
#ifndef TWIN
    int64_t balance;
#endif
    uint64_t opened, changed;
};

static struct account *account;

#ifdef TWIN
static struct figures *figures;
#else
#define figures account
#endif

HOT struct account *new_accounts(void) { return calloc(ACCOUNTS, sizeof(struct account)); }

HOT void add_up_branches(int64_t *total) {
    for (uint64_t i = 0; i < ACCOUNTS; i++)
        total[figures[i].branch] += figures[i].balance;
}

int main(int argc, char **argv) {
    uint64_t reports = argument(argc, argv, 1, 1 << 20), digest = 0, begun = now_ns();
    account = new_accounts();
#ifdef TWIN
    figures = calloc(ACCOUNTS, sizeof *figures);
#endif
    if (!account || !figures)
        planted_fail("not enough memory");
    for (uint64_t i = 0; i < ACCOUNTS; i++) {
        account[i].number = i;
        account[i].owner[0] = account[i].address[0] = 'a';
        account[i].changed = i;
        figures[i].branch = (uint32_t)(mix(i + 1) % BRANCHES);
        figures[i].balance = (int64_t)(mix(i + 2) % 100000) - 20000;
    }
    int64_t total[BRANCHES] = {0};
    for (uint64_t i = 0; i < reports; i++)
        add_up_branches(total);
    for (uint64_t i = 0; i < BRANCHES; i++)
        digest = mix(digest + (uint64_t)total[i]);
    return report(digest, begun);
}
