/* SPDX-License-Identifier: Apache-2.0 */
/* Scheduling makes a plan. A planner, chosen by name, decides strategies and placements within the
 * memory limit, and proves a bound. The result is lowered, and planned again if its pages do not
 * fit (scheduler/paged.h). Scheduling uses no process, no device, and no clock but the alarm of the
 * caller's work (base/work.h). The caller provides the solver as a function. */
#ifndef WEFT_SCHEDULER_SCHEDULE_H
#define WEFT_SCHEDULER_SCHEDULE_H

#include <stdint.h>

#include "base/status.h"
#include "plan/plan.h"
#include "program/program.h"
#include "scheduler/digest/planner.h"

/* Makes the plan with its prediction (arena included) and bound, and its program if `program` is
 * not NULL. The plan refers to `problem`, which must outlive it. Without `inputs` (NULL) there are
 * no pages: arena_bytes is 0, total_bytes the largest row, and `program` must be NULL. So it is for
 * a target that another runtime runs, and *program is then NULL. The bound
 * holds for rows within the problem's limit. Rounding to pages takes total_bytes - peak_bytes.
 *
 * WEFT_E_INFEASIBLE names the least limit that fits, the slot and categories at that peak, and
 * remedies. WEFT_E_DATA says why a rule applies to this problem at no limit. WEFT_E_USAGE names an
 * unknown planner. A solver that fails is no error: plan->solver_stop reports it, and the plan is
 * the best one found without the solver. */
WEFT_MUST_USE enum weft_status weft_schedule(const struct weft_problem *problem,
                                             const struct weft_lower_inputs *inputs,
                                             const struct weft_schedule_options *options,
                                             struct weft_plan **plan, struct weft_program **program,
                                             struct weft_error *err);

/* The least memory limit (weft_least_limit) in pages. A refusal names it, and planner ilp finds a
 * plan at it. */
WEFT_MUST_USE enum weft_status weft_least_paged_limit(const struct weft_problem *problem,
                                                      const struct weft_lower_inputs *inputs,
                                                      int64_t *bytes, struct weft_error *err);

#endif
