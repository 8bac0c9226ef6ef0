/* SPDX-License-Identifier: Apache-2.0 */
/* Twin-Flow offloads a share of the elements, from one end of the model, like ZeRO-Offload. The
 * state of the rest stays on the device and is updated there. Of 16 shares from either end, it
 * takes the fastest that fits. */
#include <stdlib.h>

#include "program/trace.h"
#include "scheduler/planners/locations.h"
#include "scheduler/planners/offload/zero_offload.h"
#include "scheduler/planners/planners.h"

enum { SHARES = 16 };

const struct weft_setting weft_twin_flow_settings[] = {
    {"stage-3", {3}},
    {"stage-2", {2}},
    {NULL, {0}},
};

/* The number of SHARES on the host, from the model's end or its beginning. */
struct share {
    int32_t n;
    bool from_end;
};

static bool is_there(const struct weft_draft *draft, int32_t unit)
{
    return weft_problem_chosen(draft->problem, draft->out->strategies, unit)->updates_on_host;
}

/* Takes the state beyond the share back to the device. */
static void take_back(struct weft_draft *draft, struct share share)
{
    const int32_t n = draft->problem->n_decisions;
    int64_t elements = 0;
    for (int32_t u = 0; u < n; u++)
        elements += is_there(draft, u) ? draft->problem->decisions[u].elements : 0;
    int64_t left = elements - elements / SHARES * share.n;
    for (int32_t i = 0; i < n && share.n < SHARES; i++) {
        const int32_t unit = share.from_end ? i : n - 1 - i;
        if (!is_there(draft, unit)) continue;
        left -= draft->problem->decisions[unit].elements;
        if (left < 0) break;
        (void)weft_locations_move(draft, unit, WEFT_LOCATION_DEVICE);
    }
}

static enum weft_status decide_share(const struct weft_problem *problem, int64_t stage,
                                     struct share share, struct weft_candidate *out,
                                     struct weft_error *err)
{
    struct weft_draft draft;
    struct weft_zero_offload run;
    enum weft_status status;
    WEFT_TRY_GOTO(done, weft_draft_init(&draft, "twin-flow", problem, out, err));
    WEFT_TRY_GOTO(done, weft_zero_offload_choose(&draft, stage, &run, err));
    WEFT_TRY_GOTO(done, weft_locations_update_all(&draft, err));
    take_back(&draft, share);
    weft_zero_offload_place(&run);
    WEFT_TRY_GOTO(done, weft_draft_end(&draft, err));
done:
    weft_draft_finish(&draft);
    return status;
}

/* Simulates the step of a decided share. */
static enum weft_status time_share(const struct weft_problem *problem,
                                   const struct weft_candidate *candidate, int64_t *scratch,
                                   int64_t *step_ns, struct weft_error *err)
{
    struct weft_prediction prediction = {0};
    struct weft_plan *plan = NULL;
    WEFT_TRY(weft_plan_create(problem, "twin-flow", candidate->strategies, candidate->moves,
                              candidate->n_moves, &plan, err));
    weft_simulate_plan(plan, scratch, &prediction);
    weft_plan_destroy(plan);
    *step_ns = prediction.step_ns;
    return WEFT_OK;
}

/* Finds the fastest share that fits. If none fits it is the whole, and its refusal says why. */
static enum weft_status find_share(const struct weft_problem *problem, int64_t stage,
                                   struct weft_candidate *out, int64_t *scratch, struct share *best,
                                   struct weft_error *err)
{
    int64_t least_ns = INT64_MAX, step_ns;
    *best = (struct share){.n = SHARES};
    for (int32_t i = 0; i < 2 * SHARES; i++) {
        const struct share share = {.n = SHARES - i / 2, .from_end = i % 2 != 0};
        enum weft_status status = decide_share(problem, stage, share, out, NULL);
        if (status == WEFT_OK) status = time_share(problem, out, scratch, &step_ns, NULL);
        if (status == WEFT_E_INFEASIBLE) continue;
        if (status != WEFT_OK) return weft_fail(err, status, "planner twin-flow: a share failed");
        if (step_ns < least_ns) *best = share;
        if (step_ns < least_ns) least_ns = step_ns;
    }
    return WEFT_OK;
}

enum weft_status weft_planner_twin_flow(const struct weft_problem *problem,
                                        const struct weft_schedule_options *options,
                                        struct weft_candidate *out, struct weft_outcome *outcome,
                                        struct weft_error *err)
{
    const int64_t stage = weft_draft_values(options, weft_twin_flow_settings)[0];
    struct share best;
    (void)outcome;
    int64_t *scratch = calloc(weft_simulate_words(problem), sizeof *scratch);
    if (scratch == NULL) return weft_fail_memory(err, "shares");
    enum weft_status status = find_share(problem, stage, out, scratch, &best, err);
    free(scratch);
    return status == WEFT_OK ? decide_share(problem, stage, best, out, err) : status;
}
