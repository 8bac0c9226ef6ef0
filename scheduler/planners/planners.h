/* The planners' functions, one a file or a row of plain.c; the table of them is in table.c. */
#ifndef WEFT_SCHEDULER_PLANNERS_PLANNERS_H
#define WEFT_SCHEDULER_PLANNERS_PLANNERS_H

#include "scheduler/digest/digest.h"
#include "scheduler/digest/planner.h"
#include "spec/planner.h"

#define WEFT_PLANNER_DECLARE(identifier, name, literal, text)                                      \
    enum weft_status weft_planner_##identifier(                                                    \
        const struct weft_problem *problem, const struct weft_schedule_options *options,           \
        struct weft_candidate *out, struct weft_outcome *outcome, struct weft_error *err);

WEFT_PLANNER_MAP(WEFT_PLANNER_DECLARE)

#undef WEFT_PLANNER_DECLARE

/* Units of work that a rule takes to decide, about. */
static inline int64_t weft_planner_rule_units(const struct weft_digest *table)
{
    return 1000 * (int64_t)table->n_slots + 50 * (int64_t)table->n_blocks;
}

#endif
