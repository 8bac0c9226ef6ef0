/* SPDX-License-Identifier: Apache-2.0 */
/* Climbs from the leanest policies, without a solver. */
#include "scheduler/planners/planners.h"
#include "scheduler/search/search.h"

enum weft_status weft_planner_greedy(const struct weft_problem *problem,
                                     const struct weft_schedule_options *options,
                                     struct weft_candidate *out, struct weft_outcome *outcome,
                                     struct weft_error *err)
{
    struct weft_digest *table = NULL;
    struct weft_search *search = NULL;
    enum weft_status status;
    (void)outcome;
    WEFT_TRY_GOTO(done, weft_digest_create_like(options->table, problem, &table, err));
    WEFT_TRY_GOTO(done, weft_search_create(table, &search, err));
    weft_search_begin(search, options->budget);
    for (int32_t i = 0; i < options->n_starts; i++)
        WEFT_TRY_GOTO(done, weft_search_start(search, options->starts[i], err));
    weft_search_greedy(search);
    if (search->step_ns >= 0) {
        weft_search_result(search, out);
    } else {
        status =
            weft_fail(err, WEFT_E_INFEASIBLE, "planner greedy: not even the leanest plan fits");
    }
done:
    weft_search_destroy(search);
    weft_digest_destroy(table);
    return status;
}
