/* What a policy needs: the memory of the fullest slot when every unit has it, and its step. How
 * much that is depends on how its blocks are placed, so a need says that too. */
#ifndef WEFT_PLAN_NEED_H
#define WEFT_PLAN_NEED_H

#include "plan/plan.h"

enum weft_need_way {
    WEFT_NEED_JUST_IN_TIME, /* gathered by the slot that waits for it, reduced at once: the least */
    WEFT_NEED_PUBLISHED,    /* as a published rule issues */
    WEFT_NEED_FASTEST,      /* the least at which more memory no longer makes the policy faster */
    WEFT_NEED_EARLIEST,     /* in its place where no times are known: all as early as it can be */
    WEFT_NEED_WAYS
};

struct weft_need {
    enum weft_policy policy;
    enum weft_need_way way;
    const char *rule; /* the planner's name, static; NULL unless published */
    bool applies;     /* false: the policy or rule cannot be applied, and what follows is empty */
    int64_t bytes;    /* of the fullest slot, base included */
    int64_t categories[WEFT_CATEGORY_COUNT]; /* the same by category */
    int32_t slot,
        unit; /* that slot; the unit with the most gathered and full gradients there, or -1 */
    const char *slot_name,
        *unit_name;         /* "" for none; whose they are is said by who fills the need */
    const char *unit_shown; /* unit_name for people; NULL: as it is */
    struct weft_period_rule period;
    int64_t step_ns, exposed_ns, channel_ns; /* 0 where no times are known */
};

/* Fills all but policy, way and rule from a predicted plan, whose problem has the names. */
WEFT_MUST_USE enum weft_status weft_need_of_plan(const struct weft_plan *plan,
                                                 struct weft_need *need, struct weft_error *err);

#endif
