/* SPDX-License-Identifier: Apache-2.0 */
/* Climbs from the leanest policies, without a solver. */
#include "scheduler/planners/planners.h"
#include "scheduler/search/alike.h"
#include "scheduler/tree/groups.h"

const struct weft_setting weft_greedy_settings[] = {
    {"each", {0}},
    {"alike", {1}},
    {NULL, {0}},
};

/* Given plans may have different choices for equal decisions, so alike plans do not start there. */
static enum weft_status search_alike(struct weft_search *search, struct weft_error *err)
{
    struct weft_pool pool = {0};
    int32_t *class_of =
        weft_pool_array(&pool, (size_t)search->table->n_decisions + 1, sizeof *class_of);
    enum weft_status status = class_of ? weft_classes_make(search->table, NULL, class_of, err)
                                       : weft_fail_memory(err, "classes of decisions");
    if (status == WEFT_OK) status = weft_search_alike(search, class_of, err);
    weft_pool_finish(&pool);
    return status;
}

static enum weft_status search_each(struct weft_search *search,
                                    const struct weft_schedule_options *options,
                                    struct weft_error *err)
{
    for (int32_t i = 0; i < options->n_starts; i++)
        WEFT_TRY(weft_search_start(search, options->starts[i], err));
    weft_search_greedy(search);
    return WEFT_OK;
}

enum weft_status weft_planner_greedy(const struct weft_problem *problem,
                                     const struct weft_schedule_options *options,
                                     struct weft_candidate *out, struct weft_outcome *outcome,
                                     struct weft_error *err)
{
    const bool alike = weft_draft_values(options, weft_greedy_settings)[0] == 1;
    struct weft_digest *table = NULL;
    struct weft_search *search = NULL;
    enum weft_status status;
    (void)outcome;
    WEFT_TRY_GOTO(done, weft_digest_create_like(options->table, problem, &table, err));
    WEFT_TRY_GOTO(done, weft_search_create(table, &search, err));
    weft_search_begin(search, options->budget);
    WEFT_TRY_GOTO(done, alike ? search_alike(search, err) : search_each(search, options, err));
    if (search->step_ns >= 0) {
        weft_search_result(search, out);
    } else {
        status = weft_fail(err, WEFT_E_INFEASIBLE, "planner greedy: %s",
                           alike ? "no plan with equal choices for equal units fits"
                                 : "not even the leanest plan fits");
    }
done:
    weft_search_destroy(search);
    weft_digest_destroy(table);
    return status;
}
