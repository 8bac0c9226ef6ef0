/* A prediction is what a plan is said to cost before it runs: times by the simulator, bytes by the
 * plan's rows. */
#ifndef WEFT_PROGRAM_PREDICT_H
#define WEFT_PROGRAM_PREDICT_H

#include "base/status.h"
#include "plan/plan.h"

/* Simulates and sums the rows; fills plan->prediction but for arena_bytes and total_bytes, which
 * lowering knows. */
WEFT_MUST_USE enum weft_status weft_plan_predict(struct weft_plan *plan, struct weft_error *err);

/* WEFT_OK when the prediction that a plan carries is what its placements give, its bound is not
 * above its step and its decision is the one that its file was written with; else WEFT_E_DATA with
 * the first that is not. The arena's figures are the
 * program's question: see weft_program_check_prediction. */
WEFT_MUST_USE enum weft_status weft_plan_check_prediction(const struct weft_plan *plan,
                                                          struct weft_error *err);

#endif
