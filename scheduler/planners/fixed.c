/* SPDX-License-Identifier: Apache-2.0 */
#include "scheduler/planners/fixed.h"

#include <stdlib.h>
#include <string.h>

#include "base/units.h"
#include "scheduler/planners/rule.h"
#include "scheduler/planners/runs.h"

const struct weft_fixed_rule weft_fixed_rules[WEFT_POLICY_COUNT] = {
    [WEFT_POLICY_DP] = {.planner = "all-dp",
                        .policies = {WEFT_POLICY_DP, WEFT_POLICY_COUNT},
                        .gather = WEFT_GATHER_EARLY},
    [WEFT_POLICY_ZERO1] = {.planner = "all-zero1",
                           .policies = {WEFT_POLICY_ZERO1, WEFT_POLICY_SDP, WEFT_POLICY_COUNT},
                           .gather = WEFT_GATHER_EARLY},
    [WEFT_POLICY_SDP] = {.planner = "all-sdp",
                         .policies = {WEFT_POLICY_SDP, WEFT_POLICY_COUNT},
                         .gather = WEFT_GATHER_EARLY},
    [WEFT_POLICY_FSDP] = {.planner = "all-fsdp",
                          .policies = {WEFT_POLICY_FSDP, WEFT_POLICY_SDP, WEFT_POLICY_COUNT},
                          .gather = WEFT_GATHER_ONE_AHEAD},
    [WEFT_POLICY_HSDP] = {.planner = "all-hsdp",
                          .policies = {WEFT_POLICY_HSDP, WEFT_POLICY_COUNT},
                          .gather = WEFT_GATHER_ONE_AHEAD},
    [WEFT_POLICY_CENTRAL] = {.planner = "all-central",
                             .policies = {WEFT_POLICY_CENTRAL, WEFT_POLICY_DP, WEFT_POLICY_COUNT},
                             .gather = WEFT_GATHER_EARLY},
    [WEFT_POLICY_NODES] = {.planner = "all-nodes",
                           .policies = {WEFT_POLICY_NODES, WEFT_POLICY_HSDP, WEFT_POLICY_COUNT},
                           .gather = WEFT_GATHER_ONE_AHEAD},
};

const struct weft_fixed_rule weft_fixed_cached = {
    .planner = "fcdp",
    .policies = {WEFT_POLICY_NODES, WEFT_POLICY_HSDP, WEFT_POLICY_COUNT},
    .gather = WEFT_GATHER_ONE_AHEAD,
    .caches = true,
};

/* Sorts moves into channel order by launch slot, then blocking gathers before reductions before
 * other gathers, then by deadline. */
static void sort_moves(const struct weft_problem *problem, struct weft_move *moves, int32_t n_moves)
{
    struct weft_move_run *runs = calloc((size_t)n_moves + 1, sizeof *runs);
    struct weft_move *sorted = malloc(((size_t)n_moves + 1) * sizeof *sorted);
    int32_t n_runs = 0, n = 0;
    for (int32_t k = 0; runs && sorted && k < n_moves; k++) {
        const struct weft_item *item = &problem->items[moves[k].item].item;
        bool gathers = item->acquires;
        bool blocks = gathers && moves[k].slot > item->last;
        int32_t launch = moves[k].launch > item->first ? moves[k].launch : item->first;
        weft_move_runs_add(runs, &n_runs,
                           (struct weft_move_run){.launch = gathers ? moves[k].slot : launch,
                                                  .kind = blocks ? -1 : gathers,
                                                  .deadline = gathers ? item->last : moves[k].slot,
                                                  .index = k,
                                                  .begin = k,
                                                  .n = 1});
    }
    weft_move_runs_sort(runs, n_runs);
    for (int32_t r = 0; r < n_runs; n += runs[r++].n)
        memcpy(sorted + n, moves + runs[r].begin, (size_t)runs[r].n * sizeof *moves);
    if (n == n_moves) memcpy(moves, sorted, (size_t)n * sizeof *moves);
    free(sorted);
    free(runs);
}

/* A trained unit has its owner, or state on all nodes, and nothing in its place. */
static const enum weft_policy *policies_for(const struct weft_fixed_rule *rule,
                                            const struct weft_problem_decision *decision)
{
    static const enum weft_policy owned[] = {WEFT_POLICY_CENTRAL, WEFT_POLICY_COUNT};
    static const enum weft_policy crossing[] = {WEFT_POLICY_NODES, WEFT_POLICY_COUNT};
    if (decision->update_slot < 0) return rule->policies;
    if (rule->policies[0] == WEFT_POLICY_CENTRAL) return owned;
    return rule->policies[0] == WEFT_POLICY_NODES ? crossing : rule->policies;
}

/* The unit's first strategy of nodes with its shard on the host; -1: none. */
static int32_t find_cached(const struct weft_problem_decision *unit)
{
    for (int32_t k = 0; k < unit->n_strategies && !unit->is_of_layer; k++)
        if (unit->strategies[k].policy == WEFT_POLICY_NODES &&
            unit->strategies[k].parameters == WEFT_LOCATION_HOST)
            return k;
    return -1;
}

bool weft_fixed_is_for(const struct weft_fixed_rule *rule, const struct weft_problem *problem)
{
    for (int32_t u = 0; rule->caches && u < problem->n_decisions; u++)
        if (find_cached(&problem->decisions[u]) >= 0) return true;
    return !rule->caches;
}

static enum weft_status choose_strategies(const struct weft_fixed_rule *rule,
                                          const struct weft_problem *problem, int32_t *strategies,
                                          struct weft_error *err)
{
    if (!weft_fixed_is_for(rule, problem))
        return weft_fail(err, WEFT_E_INFEASIBLE,
                         "planner %s: its rule caches parameters of a node in host memory, and no "
                         "unit may have policy nodes with them there: set plan.policies to "
                         "\"nodes\", plan.offload.parameters to [\"device\", \"host\"] with "
                         "cluster.host, and train.precision.compute to \"bf16\", or use another "
                         "planner",
                         rule->planner);
    for (int32_t u = 0; u < problem->n_decisions; u++) {
        const struct weft_problem_decision *unit = &problem->decisions[u];
        const int32_t cached = rule->caches ? find_cached(unit) : -1;
        if (cached >= 0)
            strategies[u] = cached;
        else
            WEFT_TRY(weft_rule_policy(problem, rule->planner, u, policies_for(rule, unit),
                                      &strategies[u], err));
    }
    return WEFT_OK;
}

/* Sums a candidate's rows like weft_digest_move_rows, but without a digest, which has rows of all
 * strategies. */
static void sum_rows(const struct weft_problem *problem, const struct weft_candidate *candidate,
                     int64_t *rows)
{
    for (int32_t i = 0; i < problem->n_common; i++)
        weft_hold_add(&problem->common[i], problem->n_slots, rows);
    for (int32_t u = 0; u < problem->n_decisions; u++) {
        const struct weft_problem_strategy *of =
            weft_problem_chosen(problem, candidate->strategies, u);
        for (int32_t i = 0; i < of->n_holds; i++)
            weft_hold_add(&of->holds[i], problem->n_slots, rows);
    }
    weft_moves_add_rows(problem, candidate->moves, candidate->n_moves, rows);
}

static enum weft_status check_rows(const struct weft_fixed_rule *rule,
                                   const struct weft_problem *problem,
                                   const struct weft_candidate *out, struct weft_error *err)
{
    int64_t *rows = calloc((size_t)weft_problem_n_rows(problem), sizeof *rows);
    if (!rows) return weft_fail_memory(err, "memory rows");
    sum_rows(problem, out, rows);
    enum weft_status status = weft_rule_check_rows(problem, rule->planner, rows, err);
    free(rows);
    return status;
}

/* Updated parts cross nodes after their update, or when the host has copied them up. An average
 * begins after its update. */
static bool crosses_early(const struct weft_problem *problem, int32_t item)
{
    const struct weft_problem_item *of = &problem->items[item];
    return weft_item_averages(&of->item) || (of->item.kind == WEFT_ACROSS_GATHER && of->after < 0);
}

void weft_fixed_place(const struct weft_problem *problem, enum weft_fixed_gather gather,
                      struct weft_candidate *out)
{
    out->n_moves = 0;
    for (int32_t i = 0; i < problem->n_items; i++) {
        const struct weft_item *item = &problem->items[i].item;
        if (!weft_item_active(item, out->strategies)) continue;
        int32_t slot = item->first;
        if (item->acquires && gather != WEFT_GATHER_EARLY && !crosses_early(problem, i))
            slot = item->last + (gather == WEFT_GATHER_BLOCKING && item->may_block);
        for (int32_t b = 0; b < item->n_blocks; b++)
            out->moves[out->n_moves++] = (struct weft_move){.item = i, .slot = slot};
    }
    sort_moves(problem, out->moves, out->n_moves);
}

enum weft_status weft_fixed_decide(const struct weft_fixed_rule *rule,
                                   const struct weft_problem *problem, struct weft_candidate *out,
                                   struct weft_error *err)
{
    WEFT_TRY(choose_strategies(rule, problem, out->strategies, err));
    weft_fixed_place(problem, rule->gather, out);
    return check_rows(rule, problem, out, err);
}
