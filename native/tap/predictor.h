/* SPDX-License-Identifier: GPL-2.0-or-later
 *
 * Predictor of branches: TAGE, a table by address and tagged ones by address and longer and longer histories (Seznec and
 * Michaud, "A case for (partially) tagged geometric history length branch predictors", JILP 8, 2006), and a table of
 * targets by address and history. Cores of today have larger ones of this kind.
 */
#ifndef NEARMISS_TAP_PREDICTOR_H
#define NEARMISS_TAP_PREDICTOR_H

#include <stdint.h>

#pragma GCC visibility push(hidden)

struct predictor;

/* NULL: no memory. */
struct predictor *predictor_new(void);
/* Each returns 1 if the branch at this address was predicted wrongly, and learns from it. */
int predictor_condition(struct predictor *, uint64_t address, int taken);
int predictor_target(struct predictor *, uint64_t address, uint64_t target);

#pragma GCC visibility pop

#endif
