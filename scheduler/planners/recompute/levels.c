/* SPDX-License-Identifier: Apache-2.0 */
#include "scheduler/planners/recompute/levels.h"

#include <string.h>

#include "base/log.h"
#include "scheduler/planners/knapsack.h"

enum { MOST_ROUNDS = 64 };

enum weft_status weft_levels_all(struct weft_draft *draft, enum weft_recompute level,
                                 struct weft_error *err)
{
    int32_t n = 0;
    for (int32_t d = 0; d < draft->problem->n_decisions; d++) {
        const int32_t found = weft_decision_of_level(&draft->problem->decisions[d], level);
        if (found < 0) continue;
        draft->levels[d] = found;
        n++;
    }
    if (n > 0) return WEFT_OK;
    return weft_fail(
        err, WEFT_E_INFEASIBLE,
        "planner %s: its rule gives every layer the level %s, which it may not have: allow "
        "recomputation with --set plan.recompute=auto, or use another planner",
        draft->planner, weft_recompute_names[level]);
}

/* The first weight is the bytes in the first watched slot. The second is the most bytes in any
 * other watched slot. Both are next to the deepest level. */
struct run {
    struct weft_draft *draft;
    const struct weft_levels_rule *rule;
    int32_t n_layers;
    int32_t *layers;                      /* their decisions */
    struct weft_knapsack_option *options; /* [n_layers][WEFT_RECOMPUTE_COUNT] */
    int32_t *choice;
    bool *watched; /* [n_slots] */
    int64_t *base; /* [n_slots]: rows of the deepest levels */
    int64_t capacity[WEFT_KNAPSACK_WEIGHTS];
    int32_t n_watched[WEFT_KNAPSACK_WEIGHTS];
};

static struct weft_knapsack_option *option_of(const struct run *run, int32_t layer, int level)
{
    return &run->options[layer * WEFT_RECOMPUTE_COUNT + level];
}

static int64_t held_bytes(const struct weft_problem_strategy *of, int32_t slot)
{
    int64_t bytes = 0;
    for (int32_t i = 0; i < of->n_holds; i++) {
        const struct weft_hold *hold = &of->holds[i];
        const bool after = slot >= hold->first, before = slot <= hold->last;
        const bool within = hold->last < hold->first ? after || before : after && before;
        if (hold->tier == 0 && within) bytes += hold->bytes;
    }
    return bytes;
}

/* Bytes of a level in a slot, next to the deepest one. */
static int64_t more_than_deepest(const struct run *run, int32_t layer, int level, int32_t slot)
{
    const struct weft_problem *problem = run->draft->problem;
    const struct weft_problem_decision *decision = &problem->decisions[run->layers[layer]];
    const struct weft_problem_strategy *of = decision->strategies;
    const int32_t k = weft_decision_of_level(decision, (enum weft_recompute)level);
    return k < 0
               ? 0
               : held_bytes(&of[k], slot) - held_bytes(&of[weft_decision_deepest(decision)], slot);
}

static void watch_slot(struct run *run, int weight, int32_t slot)
{
    const bool first = run->n_watched[weight]++ == 0;
    const int64_t room = run->rule->limit_bytes - run->base[slot];
    run->watched[slot] = true;
    if (first || room < run->capacity[weight]) run->capacity[weight] = room;
    for (int32_t l = 0; l < run->n_layers; l++) {
        for (int level = 0; level < WEFT_RECOMPUTE_COUNT; level++) {
            const int64_t more = more_than_deepest(run, l, level, slot);
            int64_t *to = &option_of(run, l, level)->weight[weight];
            if (first || more > *to) *to = more;
        }
    }
}

static enum weft_status place_levels(struct run *run, bool deepest, int64_t *peak_bytes,
                                     int32_t *peak, struct weft_error *err)
{
    const struct weft_problem *problem = run->draft->problem;
    for (int32_t l = 0; l < run->n_layers; l++) {
        const struct weft_problem_decision *decision = &problem->decisions[run->layers[l]];
        run->draft->levels[run->layers[l]] =
            deepest ? weft_decision_deepest(decision)
                    : weft_decision_of_level(decision, (enum weft_recompute)run->choice[l]);
    }
    WEFT_TRY(run->rule->place(run->draft, run->rule->values, err));
    *peak_bytes = weft_draft_peak(run->draft, peak);
    return WEFT_OK;
}

/* The slot in which keeping all takes most more than the deepest levels. */
static int32_t find_turn(const struct run *run)
{
    int64_t most = -1;
    int32_t turn = 0;
    for (int32_t s = 0; s < run->draft->problem->n_slots; s++) {
        int64_t bytes = 0;
        for (int32_t l = 0; l < run->n_layers; l++)
            bytes += more_than_deepest(run, l, WEFT_RECOMPUTE_NONE, s);
        if (bytes <= most) continue;
        most = bytes;
        turn = s;
    }
    return turn;
}

static enum weft_status prepare_run(struct run *run, struct weft_error *err)
{
    const struct weft_problem *problem = run->draft->problem;
    struct weft_pool *pool = &run->draft->pool;
    const size_t n = (size_t)problem->n_decisions, n_slots = (size_t)problem->n_slots;
    run->layers = weft_pool_array(pool, n, sizeof *run->layers);
    run->choice = weft_pool_array(pool, n, sizeof *run->choice);
    run->options = weft_pool_array(pool, n * WEFT_RECOMPUTE_COUNT, sizeof *run->options);
    run->watched = weft_pool_array(pool, n_slots, sizeof *run->watched);
    run->base = weft_pool_array(pool, n_slots, sizeof *run->base);
    if (!run->layers || !run->choice || !run->options || !run->watched || !run->base)
        return weft_fail_memory(err, "levels of recomputation");
    for (int32_t d = 0; d < problem->n_decisions; d++) {
        const struct weft_problem_decision *it = &problem->decisions[d];
        if (weft_decision_deepest(it) == 0) continue;
        for (int level = 0; level < WEFT_RECOMPUTE_COUNT; level++) {
            const int32_t k = weft_decision_of_level(it, (enum weft_recompute)level);
            struct weft_knapsack_option *option = option_of(run, run->n_layers, level);
            option->allowed = k >= 0;
            for (int32_t i = 0; k >= 0 && i < it->strategies[k].n_times; i++)
                option->cost += it->strategies[k].times[i].ns;
        }
        run->layers[run->n_layers++] = d;
    }
    if (run->n_layers > 0) return WEFT_OK;
    return weft_fail(
        err, WEFT_E_INFEASIBLE,
        "planner %s: its rule gives some layer a level of recomputation, which it may not "
        "have: allow it with --set plan.recompute=auto, or use another planner",
        run->draft->planner);
}

/* Watches one more slot in each round, or takes the excess from the only budget. */
static enum weft_status solve_levels(struct run *run, struct weft_error *err)
{
    int64_t peak_bytes;
    int32_t peak;
    bool exact = true;
    WEFT_TRY(place_levels(run, true, &peak_bytes, &peak, err));
    memcpy(run->base, run->draft->rows, (size_t)run->draft->problem->n_slots * sizeof *run->base);
    watch_slot(run, 0, run->rule->one_budget ? find_turn(run) : peak);
    run->capacity[1] = INT64_MAX;
    for (int round = 0; round < MOST_ROUNDS; round++) {
        const enum weft_status status =
            weft_knapsack(run->options, run->n_layers, WEFT_RECOMPUTE_COUNT, run->capacity,
                          run->choice, &exact, NULL, err);
        if (status == WEFT_E_INFEASIBLE) break;
        WEFT_TRY(status);
        WEFT_TRY(place_levels(run, false, &peak_bytes, &peak, err));
        if (peak_bytes <= run->rule->limit_bytes) {
            if (!exact)
                weft_log(WEFT_LOG_INFO, "planner %s: its knapsack was solved by halves",
                         run->draft->planner);
            return WEFT_OK;
        }
        if (run->rule->one_budget)
            run->capacity[0] -= peak_bytes - run->rule->limit_bytes;
        else if (run->watched[peak])
            break;
        else
            watch_slot(run, 1, peak);
    }
    return place_levels(run, true, &peak_bytes, &peak, err);
}

enum weft_status weft_levels_choose(struct weft_draft *draft, const struct weft_levels_rule *rule,
                                    struct weft_error *err)
{
    struct run run = {.draft = draft, .rule = rule};
    WEFT_TRY(prepare_run(&run, err));
    return solve_levels(&run, err);
}
