/* SPDX-License-Identifier: Apache-2.0 */
/* The cost of a target: the step of Weft's own plans at the same limit, next to that of a plan that
 * another runtime runs. */
#ifndef WEFT_LIBRARY_TARGET_COST_H
#define WEFT_LIBRARY_TARGET_COST_H

#include "library/session.h"

/* After weft_session_plan: plans the session's config for Weft, with a quarter of the config's
 * work. Fills the plan's free_step_ns and free_bound_ns, or free_never_fits. Counts rows, without
 * pages. Does nothing if the plan is for Weft. */
WEFT_MUST_USE enum weft_status weft_session_add_cost(struct weft_session *session,
                                                     struct weft_error *err);

#endif
