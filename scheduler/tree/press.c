/* SPDX-License-Identifier: Apache-2.0 */
#include "scheduler/tree/press.h"

#include <math.h>

/* Newton steps to the pressure. The value is convex in the pressure, so they come from above. */
enum { MOST_STEPS = 6 };
/* The first pressure if no node above has one. */
static const double FIRST_PRESSURE = 0.5;
/* A step below LAST_STEP of the pressure is the last. A pressure below LEAST_PRESSURE counts as
 * none. */
static const double LAST_STEP = 0.01, LEAST_PRESSURE = 1e-5;

/* Worth, at the dual's prices, of the lane time that full pressure would take. */
static double worth_of_time(const struct weft_branch *branch)
{
    const struct weft_problem *problem = branch->table->problem;
    double worth_ns = 0;
    for (int32_t lane = WEFT_LANE_FIRST; lane < problem->n_lanes; lane++)
        for (int32_t s = 0; s < problem->n_slots; s++)
            worth_ns += branch->dual->lambda[weft_problem_lane_at(problem, lane) + (size_t)s] *
                        (double)weft_ilp_pressed_ns(branch->ilp, lane, s);
    return worth_ns;
}

/* Suggests doubts: blocks that the point interrupts, and its least decided milestone of memory. */
static void suggest_doubts(struct weft_branch *branch, const double *x, struct weft_press *out)
{
    struct weft_milestone held;
    out->n_doubts =
        weft_ilp_order(branch->ilp, branch->dual, branch->proof->box, WEFT_ILP_SPARE_TIME,
                       branch->order_worth, x, WEFT_PRESS_MOST - 1, out->doubts);
    double value = weft_ilp_milestone(branch->ilp, branch->dual, branch->worth, x, &held);
    if (value > 0 && weft_milestone_is_of(&held, branch->table->problem))
        out->doubts[out->n_doubts++] = (struct weft_doubt){.milestone = held, .value = value};
}

/* Solves the relaxation under the pressure. *next: the pressure at which its prices would give the
 * goal. False without an answer. */
static bool step_pressure(struct weft_branch *branch, int64_t goal_ns, struct weft_press *out,
                          double *next)
{
    struct weft_pool pool = {0};
    struct weft_lp_result result = {0};
    struct weft_error err = {0};
    weft_ilp_press(branch->ilp, out->pressure);
    bool solved = weft_branch_relax(branch, branch->proof->box, 0, &pool, &result);
    weft_ilp_press(branch->ilp, 0);
    solved = solved && weft_ilp_prices(branch->ilp, result.duals, branch->dual, &err) == WEFT_OK;
    double worth_ns = solved ? worth_of_time(branch) : 0;
    if (worth_ns > 0) {
        out->value_ns = ldexp(result.value, branch->ilp->time_shift);
        out->spare_ns = out->pressure * worth_ns;
        *next = out->pressure - (out->value_ns - (double)goal_ns) / worth_ns;
        suggest_doubts(branch, result.x, out);
    }
    weft_pool_finish(&pool);
    return worth_ns > 0;
}

/* True if some slot's time can be pressed. None can if compute contends with communication. */
static bool may_press(const struct weft_branch *branch)
{
    const struct weft_problem *problem = branch->table->problem;
    for (int32_t lane = WEFT_LANE_FIRST; lane < problem->n_lanes; lane++)
        for (int32_t s = 0; s < problem->n_slots; s++)
            if (weft_ilp_pressed_ns(branch->ilp, lane, s) > 0) return true;
    return false;
}

bool weft_press_find(struct weft_branch *branch, int32_t node, int64_t goal_ns,
                     struct weft_press *out)
{
    double next = FIRST_PRESSURE;
    for (int32_t at = node; at >= 0; at = branch->proof->nodes[at].parent) {
        if (branch->splits[at].pressure == 0) continue;
        next = branch->splits[at].pressure;
        break;
    }
    weft_proof_enter(branch->proof, node);
    if (branch->proof->box->empty || !may_press(branch)) return false;
    for (int k = 0; k < MOST_STEPS; k++) {
        out->pressure = next;
        if (!step_pressure(branch, goal_ns, out, &next)) return false;
        if (next < LEAST_PRESSURE) return false;
        if (out->pressure - next < LAST_STEP * out->pressure) break;
    }
    branch->splits[node].pressure = out->pressure;
    return true;
}
