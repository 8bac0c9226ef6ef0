/* SPDX-License-Identifier: Apache-2.0 */
/* Rules for micro-steps that take turns by groups of layers. A pass is the slots in which all
 * micro-steps run forward, or backward, through a group. The last group has one pass for both. */
#ifndef WEFT_SCHEDULER_PLANNERS_TURNS_PASSES_H
#define WEFT_SCHEDULER_PLANNERS_TURNS_PASSES_H

#include "scheduler/planners/rule.h"

struct weft_passes {
    int32_t n, n_groups;
    int32_t *of;           /* by slot: its pass; of a slot without a layer the one before; else 0 */
    int32_t *first, *last; /* by pass: slots of layers */
};

/* Lists the passes of a period with turns, in order of time. A rotated period begins with the rest
 * of the last group's pass. */
WEFT_MUST_USE enum weft_status weft_passes_list(struct weft_draft *draft, struct weft_passes *out,
                                                struct weft_error *err);

/* Gives every unit fsdp, but sdp to units of the last two groups alone. Two buffers keep the two
 * groups gathered, because they follow one another at the turn. */
WEFT_MUST_USE enum weft_status weft_passes_choose(struct weft_draft *draft,
                                                  const struct weft_passes *passes,
                                                  struct weft_error *err);

/* Places all gathers, and copies up from the host for them. They are launched when the pass before
 * their use begins, and in the first pass of forward when that
 * begins. */
void weft_passes_gather(struct weft_draft *draft, const struct weft_passes *passes);
/* Places reductions. They are launched after their pass, and complete before the pass after the
 * next one. */
void weft_passes_reduce(struct weft_draft *draft, const struct weft_passes *passes);

#endif
