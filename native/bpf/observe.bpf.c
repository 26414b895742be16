// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* The instruments. The observer loads only those that it needs; the rest of this object never reaches the kernel. */
#include "common.h"
#include "locks.h"
#include "returns.h"
#include "polls.h"
#include "block.h"
#include "memory.h"
#include "sched.h"

char LICENSE[] SEC("license") = "Dual BSD/GPL";
