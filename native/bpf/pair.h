/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The maps that `nearmiss apply pair` and its scheduler share. Mirrored in `remedies/src/pair/apply/ext/maps.rs`, where a
 * test holds the sizes. */
#ifndef NEARMISS_BPF_PAIR_H
#define NEARMISS_BPF_PAIR_H

#include <linux/types.h>

#define PAIR_SEATS 64
#define PAIR_NEIGHBOURS 15
#define PAIR_NOBODY 0xffffffffU

/* `table`, by seat: the seats that share well with it, and those that share badly, a bit a seat. */
struct pair_row {
    __u64 high, low;
};

/* `state`, one: seats that wait for a CPU; those that have not run in this epoch, and in the next one. */
struct pair_state {
    __u64 runnable, left, next;
    __u64 dispatched, by_table;
};

/* `neighbours`, by CPU: those that share a domain with it, ended by PAIR_NOBODY. */
struct pair_neighbours {
    __u32 cpu[PAIR_NEIGHBOURS + 1];
};

/* `cpus`, by CPU: what it runs, and since when. */
struct pair_cpu {
    __u64 since, turn;
    __u32 seat, unused;
};

#endif
