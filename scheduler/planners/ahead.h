/* SPDX-License-Identifier: Apache-2.0 */
/* FSDP's schedule, for any choice of policies. One unit is gathered ahead of its use, and one
 * reduction runs at a time. Root units are gathered before all others and reduced after them. */
#ifndef WEFT_SCHEDULER_PLANNERS_AHEAD_H
#define WEFT_SCHEDULER_PLANNERS_AHEAD_H

#include "scheduler/planners/rule.h"

/* Policies of FSDP: the root stays gathered (sdp), all others are sharded. */
WEFT_MUST_USE enum weft_status weft_ahead_choose(struct weft_draft *draft, struct weft_error *err);
/* All units stay gathered after forward: `reshard_after_forward=False`. */
WEFT_MUST_USE enum weft_status weft_ahead_keep(struct weft_draft *draft, struct weft_error *err);

/* Takes the items that the policies need, and places them. A reduction is launched when its
 * gradient is ready. It is waited for when the next gradient is ready. */
void weft_ahead_place(struct weft_draft *draft, int32_t depth);

/* Places gathers alone. A gather is launched when the `depth`-th unit before its own is entered. It
 * is on demand if there is none, or if depth is 0, or in forward if depth is 1 and the target's
 * host runs ahead. Gathers of the root are launched when the first layer is entered, which waits
 * for all of them. */
void weft_ahead_gather(struct weft_draft *draft, int32_t depth);

/* Places reductions alone. */
void weft_ahead_reduce(struct weft_draft *draft);

/* values[0]: depth. */
extern const struct weft_setting weft_ahead_settings[];

#endif
