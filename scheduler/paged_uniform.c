/* SPDX-License-Identifier: Apache-2.0 */
#include "scheduler/paged_uniform.h"

#include <stdlib.h>
#include <string.h>

#include "scheduler/paged_rows.h"
#include "scheduler/search/search.h"

/* Uniform plans that are placed, at most, and rows for each: placing many blocks takes long. */
enum { MOST_PLACED = 2, MOST_ROWS = 3 };

/* A uniform plan: a kind for all units that may have it. The rest is the plan's or the leanest. */
struct uniform {
    int32_t kind;
    bool lean;
    int64_t ns; /* no step is shorter: the busiest lane */
};

static int32_t find_kind(const struct weft_problem_decision *of, int32_t kind)
{
    for (int32_t k = 0; k < of->n_strategies && !of->is_of_layer; k++)
        if (of->strategies[k].kind == kind) return k;
    return -1;
}

/* Writes a uniform plan's strategies. Returns the number of units that differ from the rest's. */
static int32_t make_uniform(const struct weft_paged *run, const struct uniform *uniform,
                            int32_t *strategies)
{
    const struct weft_problem *problem = run->problem;
    const int32_t *rest = uniform->lean ? run->table->leanest : run->plan->strategies;
    int32_t n = 0;
    for (int32_t d = 0; d < problem->n_decisions; d++) {
        const int32_t k = find_kind(&problem->decisions[d], uniform->kind);
        strategies[d] = k >= 0 ? k : rest[d];
        n += strategies[d] != rest[d];
    }
    return n;
}

int64_t weft_busiest_ns(const struct weft_problem *problem, const int32_t *strategies)
{
    int64_t loads[WEFT_MOST_LANES] = {0}, most = 0;
    for (int32_t s = 0; s < problem->n_slots; s++)
        loads[WEFT_LANE_COMPUTE] += problem->slot_ns[s];
    for (int32_t d = 0; d < problem->n_decisions; d++) {
        const struct weft_problem_strategy *of = weft_problem_chosen(problem, strategies, d);
        for (int32_t i = 0; i < of->n_times; i++)
            loads[WEFT_LANE_COMPUTE] += of->times[i].ns;
    }
    for (int32_t i = 0; i < problem->n_items; i++)
        if (weft_problem_needs(problem, strategies, i))
            loads[problem->items[i].lane] +=
                problem->items[i].block_ns * problem->items[i].item.n_blocks;
    for (int32_t lane = 0; lane < problem->n_lanes; lane++)
        if (loads[lane] > most) most = loads[lane];
    return most;
}

/* Places the strategies within rows. Leaves the run without a plan if it would not be faster. */
static enum weft_status place_in_rows(struct weft_paged *run, const int32_t *strategies,
                                      int64_t rows_bytes, int64_t below_ns, struct weft_error *err)
{
    struct weft_problem rows = *run->problem;
    struct weft_digest *table = NULL;
    struct weft_search *search = NULL;
    enum weft_status status;
    rows.tiers[0].limit_bytes = rows_bytes;
    WEFT_TRY_GOTO(done, weft_digest_create_like(run->table, &rows, &table, err));
    WEFT_TRY_GOTO(done, weft_search_create(table, &search, err));
    weft_search_begin(search, weft_budget_unlimited(run->budget.work));
    const int64_t step_ns =
        weft_search_fits(search, strategies) ? weft_search_try(search, strategies) : -1;
    if (step_ns < 0 || step_ns >= below_ns) goto done;
    weft_search_result(search, &run->candidate);
    status = weft_paged_candidate(run, rows_bytes, false, err);
    if (status == WEFT_OK && !weft_paged_fits(run)) status = weft_paged_least_pages(run, err);
done:
    weft_search_destroy(search);
    weft_digest_destroy(table);
    return status;
}

/* Places the strategies, and keeps them if they fit in pages and are faster. Rows that exceed the
 * limit in pages are lowered by the excess. */
static enum weft_status place_uniform(struct weft_paged *run, const int32_t *strategies,
                                      struct weft_error *err)
{
    const int64_t limit_bytes = run->problem->tiers[0].limit_bytes;
    const int64_t below_ns = run->plan->prediction.step_ns;
    struct weft_error refusal = {0};
    struct weft_paged_aside aside = weft_paged_put_aside(run);
    enum weft_status status = WEFT_OK;
    int64_t rows_bytes = limit_bytes;
    for (int i = 0; i < MOST_ROWS && status == WEFT_OK && rows_bytes > 0; i++) {
        if (i > 0 && weft_paged_is_late(run)) break;
        weft_paged_keep(run, NULL, NULL);
        status = place_in_rows(run, strategies, rows_bytes, below_ns, &refusal);
        if (run->plan == NULL || weft_paged_fits(run)) break;
        rows_bytes -= weft_paged_total_bytes(run) - limit_bytes;
    }
    weft_paged_keep_faster(run, aside);
    if (status == WEFT_OK || status == WEFT_E_INFEASIBLE) return WEFT_OK;
    return weft_fail_again(err, &refusal, "%s", refusal.text);
}

/* The uniform plan with the least busy lanes that fits and may be faster. Those as busy as
 * `above_ns`, or less, were placed. False: there is none. */
static bool find_next(const struct weft_paged *run, struct weft_search *search, int64_t above_ns,
                      int32_t *strategies, struct uniform *out)
{
    out->ns = run->plan->prediction.step_ns;
    bool found = false;
    for (int32_t i = 0; i < 2 * run->problem->n_kinds; i++) {
        struct uniform at = {.kind = i / 2, .lean = i % 2 > 0};
        if (make_uniform(run, &at, strategies) == 0) continue;
        at.ns = weft_busiest_ns(run->problem, strategies);
        if (at.ns <= above_ns || at.ns >= out->ns || !weft_search_fits(search, strategies))
            continue;
        *out = at;
        found = true;
    }
    return found;
}

enum weft_status weft_paged_uniform(struct weft_paged *run, struct weft_error *err)
{
    struct weft_work *work = run->budget.work;
    const int64_t spent = work != NULL ? work->spent : 0;
    struct weft_search *search = NULL;
    struct uniform uniform = {0};
    WEFT_TRY(weft_search_create(run->table, &search, err));
    int32_t *strategies = calloc((size_t)run->table->n_decisions + 1, sizeof *strategies);
    enum weft_status status =
        strategies != NULL ? WEFT_OK : weft_fail_memory(err, "uniform strategies");
    for (int i = 0; i < MOST_PLACED && status == WEFT_OK; i++) {
        if (!weft_paged_is_open(run) || weft_paged_is_late(run)) break;
        if (!find_next(run, search, uniform.ns, strategies, &uniform)) break;
        make_uniform(run, &uniform, strategies);
        status = place_uniform(run, strategies, err);
    }
    free(strategies);
    weft_search_destroy(search);
    weft_work_return(work, spent);
    return status;
}
