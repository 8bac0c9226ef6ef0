/* What to tell a person whose limit no plan meets: the least limit that works, what fills memory
 * where it is fullest, and what would change that. */
#ifndef WEFT_SCHEDULER_DIGEST_INFEASIBLE_H
#define WEFT_SCHEDULER_DIGEST_INFEASIBLE_H

#include "scheduler/digest/digest.h"

/* Fails with WEFT_E_INFEASIBLE. `refusal`: the planner's own words, "" when no planner could help.
 * `paged_bytes`: what the leanest plan takes in pages, base included; 0 when unknown. */
enum weft_status weft_fail_infeasible(const struct weft_digest *table, const char *planner,
                                      const char *refusal, int64_t paged_bytes,
                                      struct weft_error *err);

#endif
