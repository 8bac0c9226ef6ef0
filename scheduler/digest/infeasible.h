/* SPDX-License-Identifier: Apache-2.0 */
/* The message for a limit that no plan meets: the least limit that works, the categories in the
 * fullest slot, and the cures. */
#ifndef WEFT_SCHEDULER_DIGEST_INFEASIBLE_H
#define WEFT_SCHEDULER_DIGEST_INFEASIBLE_H

#include "scheduler/digest/digest.h"

/* Fills *err and returns WEFT_E_INFEASIBLE. `refusal` has the planner's reason, or "".
 * `paged_bytes` is the size of the leanest plan in pages with the base, or 0 if unknown. */
enum weft_status weft_fail_infeasible(const struct weft_digest *table, const char *planner,
                                      const char *refusal, int64_t paged_bytes,
                                      struct weft_error *err);

#endif
