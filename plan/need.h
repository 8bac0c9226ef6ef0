/* SPDX-License-Identifier: Apache-2.0 */
/* A need is the memory of a policy in its fullest slot when every unit has the policy, and its
 * step. Both depend on the placement of blocks, so a need names a way to place them. */
#ifndef WEFT_PLAN_NEED_H
#define WEFT_PLAN_NEED_H

#include "plan/plan.h"

enum weft_need_way {
    WEFT_NEED_JUST_IN_TIME, /* gathered by the slot that waits for it, reduced at once: the least
                               memory */
    WEFT_NEED_PUBLISHED,    /* as a published rule places blocks */
    WEFT_NEED_FASTEST,      /* the least memory above which the policy gets no faster */
    WEFT_NEED_EARLIEST,     /* in place of FASTEST without times: all as early as possible */
    WEFT_NEED_WAYS
};

struct weft_need {
    enum weft_policy policy;
    enum weft_need_way way;
    const char *rule; /* the planner's name, static; NULL unless published */
    bool applies;     /* false: the policy or rule cannot be applied, and the rest is empty */
    int64_t bytes;    /* bytes of the fullest slot, base included */
    int64_t categories[WEFT_CATEGORY_COUNT]; /* bytes by category */
    int32_t slot, unit; /* the fullest slot; the unit with the most gathered parameters and full
                           gradients there, or -1 */
    const char *slot_name, *unit_name; /* "" for none; the filling function states their owner */
    const char *unit_shown;            /* unit_name for people; NULL: unit_name */
    struct weft_period_rule period;
    int64_t step_ns, exposed_ns, channel_ns; /* 0 if no times are known */
};

/* Fills all but policy, way and rule from a plan with a prediction. The plan's problem owns the
 * names. */
WEFT_MUST_USE enum weft_status weft_need_of_plan(const struct weft_plan *plan,
                                                 struct weft_need *need, struct weft_error *err);

#endif
