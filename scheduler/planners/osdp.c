/* SPDX-License-Identifier: Apache-2.0 */
/* OSDP replicates or shards each unit, so that the sum of all layers' times without overlap is
 * least within the limit. Placement follows FSDP2. Galvatron also lets each layer keep what it
 * saves, or recompute it. */
#include <string.h>

#include "base/log.h"
#include "scheduler/planners/ahead.h"
#include "scheduler/planners/knapsack.h"
#include "scheduler/planners/planners.h"

enum { SHARDED, REPLICATED, N_CHOICES };

static const enum weft_policy kept[] = {WEFT_POLICY_SDP, WEFT_POLICY_COUNT};
static const enum weft_policy replicated[] = {WEFT_POLICY_DP, WEFT_POLICY_COUNT};

static enum weft_status choose_policy(struct weft_draft *draft, int32_t unit, int32_t choice,
                                      struct weft_error *err)
{
    if (draft->recomputes)
        draft->levels[unit] =
            choice == REPLICATED ? 0 : weft_decision_deepest(&draft->problem->decisions[unit]);
    const enum weft_policy *sharded = draft->root[unit] ? kept : weft_draft_sharded;
    return weft_draft_choose(draft, unit, choice == REPLICATED ? replicated : sharded, err);
}

/* The time of all work of a unit under its strategy in the draft. */
static int64_t time_of(const struct weft_draft *draft, int32_t unit)
{
    const int32_t *strategies = draft->out->strategies;
    const struct weft_problem_strategy *of = weft_problem_chosen(draft->problem, strategies, unit);
    int64_t ns = 0;
    for (int32_t i = 0; i < of->n_times; i++)
        ns += of->times[i].ns;
    for (int32_t i = 0; i < draft->problem->n_items; i++) {
        const struct weft_problem_item *item = &draft->problem->items[i];
        if (item->item.decision == unit && weft_item_active(&item->item, strategies))
            ns += item->item.n_blocks * item->block_ns;
    }
    return ns;
}

/* Fills one option of every unit, with that choice for all units that may have it. */
static void weigh_units(struct weft_draft *draft, int32_t choice, int64_t *sharded_rows,
                        int64_t *rows, struct weft_knapsack_option *options)
{
    struct weft_error ignored = {0};
    size_t n_slots = (size_t)draft->problem->n_slots;
    size_t n_rows = (size_t)weft_problem_n_rows(draft->problem);
    for (int32_t u = 0; u < draft->problem->n_decisions; u++) {
        struct weft_knapsack_option *option = &options[u * N_CHOICES + choice];
        option->allowed = choose_policy(draft, u, choice, &ignored) == WEFT_OK;
        if (option->allowed) option->cost = time_of(draft, u);
    }
    weft_ahead_place(draft, 1);
    for (int32_t u = 0; u < draft->problem->n_decisions; u++) {
        int64_t *sharded = sharded_rows + (size_t)u * n_rows, most = INT64_MIN;
        weft_draft_unit_rows(draft, u, choice == SHARDED ? sharded : rows);
        if (choice == SHARDED) continue;
        for (size_t s = 0; s < n_slots; s++)
            if (rows[s] - sharded[s] > most) most = rows[s] - sharded[s];
        options[u * N_CHOICES + choice].weight[0] = most;
    }
}

static enum weft_status decide_policies(struct weft_draft *draft, struct weft_error *err)
{
    const struct weft_problem *problem = draft->problem;
    size_t n_units = (size_t)problem->n_decisions, n_rows = (size_t)weft_problem_n_rows(problem);
    struct weft_knapsack_option *options =
        weft_pool_array(&draft->pool, n_units * N_CHOICES, sizeof *options);
    int64_t *rows = weft_pool_array(&draft->pool, (n_units + 1) * n_rows, sizeof *rows);
    int32_t *choice = weft_pool_array(&draft->pool, n_units, sizeof *choice);
    bool exact = true;
    if (!options || !rows || !choice) return weft_fail_memory(err, "a knapsack");
    for (int32_t u = 0; u < problem->n_decisions; u++)
        WEFT_TRY(choose_policy(draft, u, SHARDED, err));
    weigh_units(draft, SHARDED, rows, rows + n_units * n_rows, options);
    int64_t capacity[WEFT_KNAPSACK_WEIGHTS] = {
        problem->tiers[0].limit_bytes - weft_draft_peak(draft, NULL), 0};
    weigh_units(draft, REPLICATED, rows, rows + n_units * n_rows, options);
    /* If not even all units sharded fit, that plan is the one refused. */
    if (capacity[0] < 0) capacity[0] = 0;
    WEFT_TRY(weft_knapsack(options, problem->n_decisions, N_CHOICES, capacity, choice, &exact, NULL,
                           err));
    if (!exact)
        weft_log(WEFT_LOG_INFO, "planner %s: its knapsack was solved by halves", draft->planner);
    for (int32_t u = 0; u < problem->n_decisions; u++)
        WEFT_TRY(choose_policy(draft, u, choice[u], err));
    return WEFT_OK;
}

enum weft_status weft_rule_osdp(struct weft_draft *draft, const int64_t *values,
                                struct weft_error *err)
{
    (void)values;
    WEFT_TRY(decide_policies(draft, err));
    weft_ahead_place(draft, 1);
    return WEFT_OK;
}

enum weft_status weft_rule_galvatron(struct weft_draft *draft, const int64_t *values,
                                     struct weft_error *err)
{
    draft->recomputes = true;
    return weft_rule_osdp(draft, values, err);
}
