/* SPDX-License-Identifier: Apache-2.0 */
/* Placements have two orders: that of their lane, and that of their chain. A chain is items that
 * follow one another: each block begins after the same block of the previous item, on any lane. The
 * plan's array respects both orders. */
#ifndef WEFT_PLAN_CHAIN_H
#define WEFT_PLAN_CHAIN_H

#include "base/status.h"
#include "plan/placement.h"

/* Fills `after` of placements with valid items and blocks. Moves each after its predecessor if
 * needed, without changing the order of a lane. If placements wait for one another in a circle,
 * fails with `refusal`, names `where` and the circle, and changes nothing. WEFT_E_SYSTEM without
 * memory. */
WEFT_MUST_USE enum weft_status weft_placements_chain(const struct weft_problem *problem,
                                                     struct weft_placement *placements,
                                                     int32_t n_placements, const char *where,
                                                     enum weft_status refusal,
                                                     struct weft_error *err);

#endif
