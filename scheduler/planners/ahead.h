/* FSDP's schedule, whatever chose the policies: one unit gathered ahead of its use, one reduction
 * at a time, and a root unit that is gathered before and reduced behind all others. */
#ifndef WEFT_SCHEDULER_PLANNERS_AHEAD_H
#define WEFT_SCHEDULER_PLANNERS_AHEAD_H

#include "scheduler/planners/rule.h"

/* Policies of FSDP: the root stays gathered (sdp), all others are sharded. */
WEFT_MUST_USE enum weft_status weft_ahead_choose(struct weft_draft *draft, struct weft_error *err);
/* All stay gathered behind forward: `reshard_after_forward=False`. */
WEFT_MUST_USE enum weft_status weft_ahead_keep(struct weft_draft *draft, struct weft_error *err);

/* Takes the items that the policies need and places them. A reduction is launched when the gradient
 * is ready, and waited for when the next one is. */
void weft_ahead_place(struct weft_draft *draft, int32_t depth);

/* The gathers alone: launched when the `depth`-th unit before their own is entered; with none
 * before, and with depth 0, on demand. The root's are launched when the first layer is, which waits
 * for all of them. */
void weft_ahead_gather(struct weft_draft *draft, int32_t depth);

/* The reductions alone. */
void weft_ahead_reduce(struct weft_draft *draft);

/* values[0]: depth. */
extern const struct weft_setting weft_ahead_settings[];

#endif
