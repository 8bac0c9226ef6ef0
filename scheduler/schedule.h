/* To schedule is to make a plan: choose a planner by name, let it decide strategies and placements
 * within the memory limit, prove a bound, lower the result, and plan again
 * (scheduler/paged.h) if its pages do not fit. Pure: no process or device, and no clock
 * but the alarm of the caller's work (base/work.h); the solver is a function of the caller's. */
#ifndef WEFT_SCHEDULER_SCHEDULE_H
#define WEFT_SCHEDULER_SCHEDULE_H

#include <stdint.h>

#include "base/status.h"
#include "plan/plan.h"
#include "program/program.h"
#include "scheduler/digest/planner.h"

/* The plan, its prediction (arena included) and bound filled, and its program when `program` is not
 * NULL. The plan refers to `problem`, which must outlive it. Without `inputs` (NULL) there are
 * no pages: arena_bytes is 0, total_bytes the largest row, and `program` must be NULL. The bound
 * holds for rows within the problem's limit; what pages round up is total_bytes - peak_bytes.
 * WEFT_E_INFEASIBLE names the least limit that fits, the slot and categories at that peak, and what
 * would help; WEFT_E_DATA why a rule applies to this problem at no limit; WEFT_E_USAGE an unknown
 * planner. A solver that fails is no error: the best plan found
 * without it is returned, plan->solver_stop says so. */
WEFT_MUST_USE enum weft_status weft_schedule(const struct weft_problem *problem,
                                             const struct weft_lower_inputs *inputs,
                                             const struct weft_schedule_options *options,
                                             struct weft_plan **plan, struct weft_program **program,
                                             struct weft_error *err);

/* The least memory limit (weft_least_limit) in pages, which a refusal names and planner ilp
 * finds a plan at. */
WEFT_MUST_USE enum weft_status weft_least_paged_limit(const struct weft_problem *problem,
                                                      const struct weft_lower_inputs *inputs,
                                                      int64_t *bytes, struct weft_error *err);

#endif
