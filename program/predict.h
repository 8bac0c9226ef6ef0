/* SPDX-License-Identifier: Apache-2.0 */
/* A prediction is a plan's cost before it runs: times by the simulator, bytes by the plan's
 * rows. */
#ifndef WEFT_PROGRAM_PREDICT_H
#define WEFT_PROGRAM_PREDICT_H

#include "base/status.h"
#include "plan/plan.h"

/* Simulates the plan and sums its rows. Fills plan->prediction except for arena_bytes and
 * total_bytes, which lowering knows. */
WEFT_MUST_USE enum weft_status weft_plan_predict(struct weft_plan *plan, struct weft_error *err);

/* Predicts the longest time between two collectives: from the launch of one to the launch of the
 * next one on its lane, over the ends of steps too, and the longest collective. A rank that is k
 * times slower than the plan keeps its peers waiting at most k times as long. 0 without
 * collectives. */
WEFT_MUST_USE enum weft_status weft_plan_longest_wait(const struct weft_plan *plan, int64_t *out_ns,
                                                      struct weft_error *err);

/* WEFT_OK if the plan's placements give its prediction, its bound is at most its step, and its
 * decision has the hash in its file. Otherwise WEFT_E_DATA with the first difference.
 * weft_program_check_prediction checks the arena's figures. */
WEFT_MUST_USE enum weft_status weft_plan_check_prediction(const struct weft_plan *plan,
                                                          struct weft_error *err);
/* WEFT_OK if a plan's file alone proves its claims: rows, prediction and bounds. Otherwise
 * WEFT_E_DATA names `source`. Bounds of other periods, and the program, need the config. */
WEFT_MUST_USE enum weft_status weft_plan_check_claims(const struct weft_plan *plan,
                                                      const char *source, struct weft_error *err);

/* The averages over nodes of period.every steps: time of their blocks on lanes, bytes that a rank
 * sends to other nodes, a step without one, and the longest step. If each step has one, both are of
 * all steps. All 0 without averages. */
struct weft_plan_averages {
    int64_t ns, sent_bytes, usual_ns, longest_ns;
};
WEFT_MUST_USE enum weft_status weft_plan_find_averages(const struct weft_plan *plan,
                                                       struct weft_plan_averages *out,
                                                       struct weft_error *err);

#endif
