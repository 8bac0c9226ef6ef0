#include "scheduler/rounds/rivals.h"

#include <stdlib.h>
#include <string.h>

#include "scheduler/planners/planners.h"
#include "scheduler/planners/table.h"

/* Counts each planner's settings. */
static int32_t count(void)
{
    int32_t n = 0;
    for (const struct weft_planner *planner = weft_planners(); planner->name; planner++) {
        const struct weft_setting *setting = weft_planner_settings(planner);
        do
            n++;
        while (setting && (++setting)->name);
    }
    return n;
}

/* Copies the rival, with its candidate, behind the others. */
static enum weft_status add(struct weft_rivals *rivals, const struct weft_digest *table,
                            const struct weft_rival *rival, struct weft_error *err)
{
    const struct weft_candidate *from = &rival->candidate;
    struct weft_candidate to = {
        .strategies =
            weft_pool_array(&rivals->pool, (size_t)table->n_decisions + 1, sizeof *to.strategies),
        .moves = weft_pool_array(&rivals->pool, (size_t)from->n_moves + 1, sizeof *to.moves),
        .n_moves = from->n_moves};
    if (!to.strategies || !to.moves) return weft_fail_memory(err, "what rules decide");
    memcpy(to.strategies, from->strategies, (size_t)table->n_decisions * sizeof *to.strategies);
    memcpy(to.moves, from->moves, (size_t)from->n_moves * sizeof *to.moves);
    rivals->rivals[rivals->n] = *rival;
    rivals->rivals[rivals->n].candidate = to;
    rivals->rivals[rivals->n].number = rivals->n;
    rivals->n++;
    return WEFT_OK;
}

/* What one planner decides, measured; `scratch` is for its decision. */
static enum weft_status decide(const struct weft_packed *run, const struct weft_problem *rows,
                               const struct weft_planner *planner,
                               const struct weft_setting *setting, struct weft_candidate *scratch,
                               struct weft_rivals *rivals, struct weft_error *err)
{
    enum { GREEDY_PART = 8 };
    struct weft_schedule_options options = *run->options;
    struct weft_pool pool = {0};
    struct weft_outcome outcome = {.pool = &pool};
    struct weft_error refusal = {0};
    struct weft_plan *plan = NULL;
    options.setting = setting;
    options.budget = weft_budget_part(run->budget, 1.0 / GREEDY_PART);
    weft_work_spend(run->budget.work, weft_planner_rule_units(run->table));
    enum weft_status status = planner->decide(rows, &options, scratch, &outcome, &refusal);
    weft_pool_finish(&pool);
    if (status == WEFT_E_INFEASIBLE) return WEFT_OK;
    if (status != WEFT_OK) return weft_fail(err, status, "%s", refusal.text);
    WEFT_TRY(weft_packed_measure(run, scratch, rows, true, &plan, err));
    const struct weft_rival rival = {planner, setting, *scratch, plan->prediction.step_ns, 0};
    status = add(rivals, run->table, &rival, err);
    weft_plan_destroy(plan);
    return status;
}

static int compare(const void *a, const void *b)
{
    const struct weft_rival *x = a, *y = b;
    if (x->step_ns != y->step_ns) return x->step_ns < y->step_ns ? -1 : 1;
    return x->number < y->number ? -1 : x->number > y->number;
}

static bool same_moves(const struct weft_candidate *a, const struct weft_candidate *b)
{
    for (int32_t k = 0; k < a->n_moves; k++) {
        const struct weft_move *x = &a->moves[k], *y = &b->moves[k];
        if (x->item != y->item || x->slot != y->slot || x->launch != y->launch) return false;
    }
    return true;
}

static bool same(const struct weft_rival *a, const struct weft_rival *b, int32_t n_decisions)
{
    const struct weft_candidate *x = &a->candidate, *y = &b->candidate;
    return a->step_ns == b->step_ns && x->n_moves == y->n_moves &&
           memcmp(x->strategies, y->strategies, (size_t)n_decisions * sizeof *x->strategies) == 0 &&
           same_moves(x, y);
}

static void sort(struct weft_rivals *rivals, int32_t n_decisions)
{
    int32_t n = 0;
    qsort(rivals->rivals, (size_t)rivals->n, sizeof *rivals->rivals, compare);
    for (int32_t i = 0; i < rivals->n; i++)
        if (n == 0 || !same(&rivals->rivals[n - 1], &rivals->rivals[i], n_decisions))
            rivals->rivals[n++] = rivals->rivals[i];
    rivals->n = n;
}

enum weft_status weft_rivals_create(const struct weft_packed *run, const struct weft_problem *rows,
                                    struct weft_rivals *out, struct weft_error *err)
{
    const struct weft_digest *table = run->table;
    *out = (struct weft_rivals){0};
    struct weft_candidate scratch = {
        .strategies =
            weft_pool_array(&out->pool, (size_t)table->n_decisions + 1, sizeof *scratch.strategies),
        .moves = weft_pool_array(&out->pool, (size_t)table->n_blocks + 1, sizeof *scratch.moves)};
    out->rivals = weft_pool_array(&out->pool, (size_t)count(), sizeof *out->rivals);
    if (!scratch.strategies || !scratch.moves || !out->rivals)
        return weft_fail_memory(err, "what rules decide");
    for (const struct weft_planner *planner = weft_planners(); planner->name; planner++) {
        const struct weft_setting *setting = weft_planner_settings(planner);
        bool is_greedy = planner->decide == weft_planner_greedy;
        if (is_greedy ? weft_packed_is_spent(run) : !weft_planner_is_rule(planner)) continue;
        do
            WEFT_TRY(decide(run, rows, planner, setting, &scratch, out, err));
        while (!weft_packed_is_spent(run) && setting && (++setting)->name);
    }
    sort(out, table->n_decisions);
    return WEFT_OK;
}

void weft_rivals_finish(struct weft_rivals *rivals)
{
    weft_pool_finish(&rivals->pool);
    *rivals = (struct weft_rivals){0};
}
