/* SPDX-License-Identifier: Apache-2.0 */
/* The least time that slots last beyond their compute. Chains of items are under way, and blocks of
 * several lanes make one slot wait. */
#ifndef WEFT_PROBLEM_WAITS_H
#define WEFT_PROBLEM_WAITS_H

#include "problem/problem.h"

/* An item with all that it follows, as one chain. No plan completes it in less than `ns` after it
 * begins: its first block passes every item, and then the slowest item has the other blocks. */
struct weft_chain {
    int32_t first, last; /* slots: begins in `first` or later and is complete after `last` */
    bool may_block;      /* or before slot last + 1 computes */
    int64_t ns;
};
struct weft_chain weft_problem_chain(const struct weft_problem *problem, int32_t item);

/* Slots that blocks of several lanes may block, with these lanes. Items of 0 ns do not count. */
struct weft_waits {
    int32_t n;
    int32_t *first; /* [n_slots + 1]: index of a slot's first lane */
    int32_t *lanes; /* [n]: the slot's lanes, in increasing order */
};

/* Finds them, with arrays of the pool. WEFT_E_SYSTEM without memory. */
WEFT_MUST_USE enum weft_status weft_problem_waits(const struct weft_problem *problem,
                                                  struct weft_pool *pool, struct weft_waits *out,
                                                  struct weft_error *err);

/* The index of the slot's lane; -1: no other lane may block the slot, or this one may not. */
static inline int32_t weft_waits_at(const struct weft_waits *waits, int32_t slot, int32_t lane)
{
    for (int32_t k = waits->first[slot]; k < waits->first[slot + 1]; k++)
        if (waits->lanes[k] == lane) return k;
    return -1;
}

#endif
