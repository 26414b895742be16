/* SPDX-License-Identifier: MIT OR Apache-2.0
 *
 * Markers for a program's interesting part. Under `nearmiss trace` they open and close the window and name points of
 * the run; anywhere else each is one instruction that does nothing.
 *
 *     #include "nearmiss.h"
 *
 *     load_input();
 *     NEARMISS_MARK(1);          // nearmiss trace --from mark:1 --until mark:2 -- ./program
 *     work();
 *     NEARMISS_MARK(2);
 *
 * A mark's number is a constant from 0 to 4095. One mark may open and close the window: --from mark:1 --until mark:1 is
 * one turn of a loop that begins with NEARMISS_MARK(1). Without --from the window opens when the program starts; marks
 * that neither open nor close it only name points of the run.
 */
#ifndef NEARMISS_H
#define NEARMISS_H

#include "nearmiss_trigger.h"

#define NEARMISS_MARK(number) NEARMISS_TRIGGER(NEARMISS_TRIGGER_MARK_BASE | ((number) & NEARMISS_TRIGGER_MARK_MASK))

#endif
