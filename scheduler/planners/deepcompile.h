/* SPDX-License-Identifier: Apache-2.0 */
/* DeepCompile's rule for gathers. Other rules build on it. */
#ifndef WEFT_SCHEDULER_PLANNERS_DEEPCOMPILE_H
#define WEFT_SCHEDULER_PLANNERS_DEEPCOMPILE_H

#include "scheduler/planners/rule.h"

/* values[0]: percent of the limit that it uses; values[1], values[2]: whether it prefetches, and
 * whether it keeps units gathered. */
extern const struct weft_setting weft_deepcompile_settings[];
/* Settings of deepcompile-offload. values[0]: percent of the limit within which state stays.
 * values[1]: percent within which gathers are then moved ahead; 0: on demand. values[2]: whether
 * backward asks for room too. */
extern const struct weft_setting weft_deepcompile_offload_settings[];

/* A rule at work. The draft owns its memory. */
struct weft_deepcompile {
    struct weft_draft *draft;
    int64_t budget_bytes;
    struct weft_draft_line line;
    int64_t *profile; /* [n_slots]: rows before gathers are moved ahead */
    /* Gathers on their way ahead, latest use first. Neighbours of one group are launched
     * together. */
    int32_t *held, *group;
    int32_t first_held, n_held, n_groups;
    int64_t held_bytes, group_bytes; /* of all held, of the newest group */
    int32_t *slots;                  /* by item: the slot in which a gather is launched */
};

/* Begins the rule. Gathers are moved ahead within that percent of the device's limit. WEFT_E_SYSTEM
 * without memory. */
WEFT_MUST_USE enum weft_status weft_deepcompile_init(struct weft_draft *draft, int64_t percent,
                                                     struct weft_deepcompile *out,
                                                     struct weft_error *err);
/* Takes the items that the policies need. Places gathers on demand and reductions at once. */
void weft_deepcompile_on_demand(struct weft_deepcompile *run);
/* Places them again with gathers moved ahead, as far as these fit next to the rows of the draft. */
void weft_deepcompile_prefetch(struct weft_deepcompile *run);
/* That percent of the device's limit; practically none if the device has no limit. */
int64_t weft_deepcompile_budget(const struct weft_problem *problem, int64_t percent);

#endif
