/* SPDX-License-Identifier: Apache-2.0 */
/* GreedySnake runs all micro-steps through a layer before the next one. It offloads parameters,
 * state and inputs of layers, and recomputes layers. While a layer runs, the parameters of the next
 * one come, and its state is updated among the forwards of the next step. */
#include <string.h>

#include "proof/box.h"
#include "scheduler/planners/locations.h"
#include "scheduler/planners/planners.h"
#include "scheduler/planners/turns/passes.h"

/* values[1]: parameters are on the host, where they may be. */
const struct weft_setting weft_greedysnake_settings[] = {
    {"parameters-on-host", {1, 1}},
    {"parameters-on-device", {1, 0}},
    {NULL, {0}},
};

/* Layers recompute whole, and their inputs are on the host, where they may. */
static void choose_levels(struct weft_draft *draft)
{
    for (int32_t d = 0; d < draft->problem->n_decisions; d++) {
        const struct weft_problem_decision *it = &draft->problem->decisions[d];
        const int32_t level = it->is_of_layer ? weft_decision_deepest(it) : 0;
        draft->levels[d] = level;
        for (int32_t k = 0; k < it->n_strategies && it->is_of_layer; k++) {
            const struct weft_problem_strategy *of = &it->strategies[k];
            if (of->recompute == it->strategies[level].recompute &&
                of->location == it->strategies[level].location && of->input == WEFT_LOCATION_HOST)
                draft->levels[d] = k;
        }
    }
}

/* The strategy of the unit's policy with its state and parameters there; -1: none. */
static int32_t find_way(const struct weft_draft *draft, int32_t unit, enum weft_location state,
                        enum weft_location parameters)
{
    const struct weft_problem_decision *it = &draft->problem->decisions[unit];
    const enum weft_policy policy = weft_draft_policy(draft, unit);
    for (int32_t k = 0; k < it->n_strategies; k++) {
        const struct weft_problem_strategy *of = &it->strategies[k];
        if (of->policy == policy && of->location == state && of->parameters == parameters &&
            !of->updates_on_host)
            return k;
    }
    return -1;
}

/* Adds a strategy's bytes to rows, or takes them away. */
static void add_strategy(const struct weft_draft *draft, int32_t decision, int sign, int64_t *rows)
{
    const struct weft_problem_strategy *of =
        weft_problem_chosen(draft->problem, draft->out->strategies, decision);
    for (int32_t i = 0; i < of->n_holds; i++) {
        struct weft_hold hold = of->holds[i];
        hold.bytes *= sign;
        weft_hold_add(&hold, draft->problem->n_slots, rows);
    }
}

/* Whether all tiers but the device have room. */
static bool has_room(const struct weft_problem *problem, const int64_t *rows)
{
    for (int32_t r = problem->n_slots; r < weft_problem_n_rows(problem); r++)
        if (rows[r] > problem->tiers[r / problem->n_slots].limit_bytes) return false;
    return true;
}

/* Gives a unit that way if tiers have room for it. */
static bool take_way(struct weft_draft *draft, int32_t unit, enum weft_location state,
                     enum weft_location parameters, int64_t *rows)
{
    const int32_t before = draft->out->strategies[unit];
    const int32_t way = find_way(draft, unit, state, parameters);
    if (way < 0) return false;
    add_strategy(draft, unit, -1, rows);
    draft->out->strategies[unit] = way;
    add_strategy(draft, unit, 1, rows);
    if (has_room(draft->problem, rows)) return true;
    add_strategy(draft, unit, -1, rows);
    draft->out->strategies[unit] = before;
    add_strategy(draft, unit, 1, rows);
    return false;
}

/* Moves a unit's state, and its parameters to the host if they may be there. */
static bool move_unit(struct weft_draft *draft, int32_t unit, enum weft_location state,
                      bool offloads, int64_t *rows)
{
    return (offloads && take_way(draft, unit, state, WEFT_LOCATION_HOST, rows)) ||
           take_way(draft, unit, state, WEFT_LOCATION_DEVICE, rows);
}

/* Parameters of all units come first. Then host memory takes the state of the units used first, as
 * far as it has room, and the disk has the rest. */
static enum weft_status choose_locations(struct weft_draft *draft, bool offloads,
                                         struct weft_error *err)
{
    const struct weft_problem *problem = draft->problem;
    const int32_t n_units = weft_problem_n_units(problem);
    bool moved = false;
    memset(draft->rows, 0, (size_t)weft_problem_n_rows(problem) * sizeof *draft->rows);
    for (int32_t i = 0; i < problem->n_common; i++)
        weft_hold_add(&problem->common[i], problem->n_slots, draft->rows);
    for (int32_t d = 0; d < problem->n_decisions; d++)
        add_strategy(draft, d, 1, draft->rows);
    for (int32_t u = 0; u < n_units; u++)
        moved |= move_unit(draft, u, WEFT_LOCATION_DISK, offloads, draft->rows);
    for (int32_t u = 0; u < n_units; u++)
        moved |= move_unit(draft, u, WEFT_LOCATION_HOST, offloads, draft->rows);
    if (moved) return WEFT_OK;
    return weft_fail(err, WEFT_E_INFEASIBLE,
                     "planner %s: its rule offloads the state of units to a disk or the host, "
                     "which it may not have: give cluster.disk or cluster.host, and allow it in "
                     "plan.offload, or use another planner",
                     draft->planner);
}

enum weft_status weft_rule_greedysnake(struct weft_draft *draft, const int64_t *values,
                                       struct weft_error *err)
{
    struct weft_passes passes;
    WEFT_TRY(weft_passes_list(draft, &passes, err));
    choose_levels(draft);
    WEFT_TRY(weft_draft_choose_all(draft, weft_draft_sharded, err));
    WEFT_TRY(choose_locations(draft, values[1] != 0, err));
    weft_draft_take(draft);
    weft_passes_gather(draft, &passes);
    weft_passes_reduce(draft, &passes);
    weft_locations_stream(draft);
    return WEFT_OK;
}
