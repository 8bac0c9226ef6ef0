/* Blocks of an item that comes after another one begin when the other's are over, each when its own
 * is, on whatever lanes they are. So placements have two orders: that of their lane, and that of
 * their chain. An array of placements is in both. */
#ifndef WEFT_PLAN_CHAIN_H
#define WEFT_PLAN_CHAIN_H

#include "base/status.h"
#include "plan/placement.h"

/* Fills `after` of placements whose items and blocks are in range, and moves each behind the one
 * that it comes after, as far as need be and no lane's order changes. Fails with `refusal` and
 * `where` when that cannot be done, because some wait for one another round a circle, which it
 * names; WEFT_E_SYSTEM. */
WEFT_MUST_USE enum weft_status weft_placements_chain(const struct weft_problem *problem,
                                                     struct weft_placement *placements,
                                                     int32_t n_placements, const char *where,
                                                     enum weft_status refusal,
                                                     struct weft_error *err);

#endif
