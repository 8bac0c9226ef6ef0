/* SPDX-License-Identifier: Apache-2.0 */
/* An attempt is a plan that a study makes of a problem in memory. */
#ifndef WEFT_CLI_STUDY_ATTEMPT_H
#define WEFT_CLI_STUDY_ATTEMPT_H

#include "plan/plan.h"
#include "scheduler/schedule.h"

/* Makes the plan of options->planner, without solver, pages or proof, and predicts its step. *out
 * is NULL if no plan fits, for the reason in *why (may be NULL); the caller destroys it. */
WEFT_MUST_USE enum weft_status weft_study_attempt(const struct weft_problem *problem,
                                                  const struct weft_schedule_options *options,
                                                  struct weft_plan **out, struct weft_error *why,
                                                  struct weft_error *err);

#endif
