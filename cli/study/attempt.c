/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/study/attempt.h"

#include <stdlib.h>

#include "program/predict.h"
#include "scheduler/planners/table.h"

enum weft_status weft_study_attempt(const struct weft_problem *problem,
                                    const struct weft_schedule_options *options,
                                    struct weft_plan **out, struct weft_error *why,
                                    struct weft_error *err)
{
    struct weft_pool pool = {0};
    struct weft_outcome outcome = {.pool = &pool};
    struct weft_error refusal = {0};
    size_t n_blocks = (size_t)weft_problem_count_blocks(problem) + 1;
    struct weft_candidate candidate = {
        .strategies = calloc((size_t)problem->n_decisions + 1, sizeof *candidate.strategies),
        .moves = calloc(n_blocks, sizeof *candidate.moves)};
    enum weft_status status = WEFT_OK;
    *out = NULL;
    if (why != NULL) *why = (struct weft_error){0};
    if (!candidate.strategies || !candidate.moves) {
        status = weft_fail_memory(err, "a plan");
    } else {
        status = weft_planner_decide(weft_planner_find(options->planner, NULL), problem, options,
                                     &candidate, &outcome, &refusal);
        if (status == WEFT_OK)
            status = weft_plan_create(problem, options->planner, candidate.strategies,
                                      candidate.moves, candidate.n_moves, out, &refusal);
        if (status == WEFT_OK) status = weft_plan_predict(*out, &refusal);
        if (status == WEFT_E_INFEASIBLE && why != NULL) *why = refusal;
        if (status == WEFT_E_INFEASIBLE)
            status = WEFT_OK;
        else if (status != WEFT_OK)
            status = weft_fail(err, status, "%s", refusal.text);
    }
    free(candidate.strategies);
    free(candidate.moves);
    weft_pool_finish(&pool);
    return status;
}
