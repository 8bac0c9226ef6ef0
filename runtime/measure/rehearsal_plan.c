/* SPDX-License-Identifier: Apache-2.0 */
#include <stdlib.h>

#include "plan/plan.h"
#include "problem/stages.h"
#include "program/predict.h"
#include "runtime/measure/parts.h"
#include "spec/target.h"

/* A placement and its order on the channel: at the start of slot `at`. */
struct place {
    int32_t at, order;
    struct weft_move move;
};

static int compare_places(const void *a, const void *b)
{
    const struct place *x = a, *y = b;
    return x->at != y->at ? (x->at > y->at) - (x->at < y->at)
                          : (x->order > y->order) - (x->order < y->order);
}

/* The leanest policy of a unit. Then every later plan's base memory fits. `whole`: prefers dp. */
static int32_t leanest_policy(const struct weft_problem *problem, int32_t u, bool whole)
{
    static const enum weft_policy order[] = {WEFT_POLICY_FSDP, WEFT_POLICY_SDP, WEFT_POLICY_ZERO1};
    const struct weft_problem_decision *unit = &problem->decisions[u];
    const int32_t dp = weft_decision_of_policy(unit, WEFT_POLICY_DP);
    if (whole && dp >= 0) return dp;
    for (size_t i = 0; i < sizeof order / sizeof *order; i++) {
        int32_t strategy = weft_decision_of_policy(unit, order[i]);
        if (strategy >= 0) return strategy;
    }
    return 0;
}

/* Layers with the same strategies take turns at the levels of recomputation, with all on the
 * device, so that one plan measures all levels. Keeping all and the deepest level come first: a
 * model may have fewer layers than levels. */
static int32_t turn_of_layer(const struct weft_problem *problem, int32_t decision)
{
    const struct weft_problem_decision *of = &problem->decisions[decision];
    int32_t before = 0, n = 0, levels[WEFT_LAYER_CHOICES] = {0};
    for (int32_t k = 0; k < of->n_strategies; k++)
        if (of->strategies[k].location == WEFT_LOCATION_DEVICE &&
            of->strategies[k].input == of->strategies[0].input)
            levels[n++] = k;
    for (int32_t i = n - 1; i > 1; i--) {
        const int32_t later = levels[i];
        levels[i] = levels[i - 1];
        levels[i - 1] = later;
    }
    for (int32_t d = weft_problem_n_units(problem); d < decision; d++) {
        const struct weft_problem_decision *other = &problem->decisions[d];
        before += other->n_strategies == of->n_strategies &&
                  other->strategies[0].holds[0].bytes == of->strategies[0].holds[0].bytes;
    }
    return n == 0 ? 0 : levels[before % n];
}

/* Launches each gather one slot before its use, and gives each reduction one slot more than it
 * needs. So communication overlaps compute, as in a good plan. */
enum weft_status weft_measure_rehearsal_plan(const struct weft_config *config,
                                             const struct weft_problem *problem,
                                             struct weft_plan **out, struct weft_error *err)
{
    /* Copies of slices next to compute slow a GPU's layers, and no plan of one rank has them. On a
     * CPU they show memory that the process takes for them. */
    const bool whole = problem->ranks == 1 && config->cluster.device.type == WEFT_DEVICE_CUDA;
    enum weft_status status = WEFT_OK;
    int32_t n = 0, most = 0;
    for (int32_t i = 0; i < problem->n_items; i++)
        most += problem->items[i].item.n_blocks;
    int32_t *strategies = calloc((size_t)problem->n_decisions + 1, sizeof *strategies);
    struct place *places = calloc((size_t)most + 1, sizeof *places);
    struct weft_move *moves = calloc((size_t)most + 1, sizeof *moves);
    if (strategies == NULL || places == NULL || moves == NULL) {
        status = weft_fail_memory(err, "the rehearsal's plan");
        goto done;
    }
    for (int32_t u = 0; u < problem->n_decisions; u++)
        strategies[u] = problem->decisions[u].is_of_layer ? turn_of_layer(problem, u)
                                                          : leanest_policy(problem, u, whole);
    for (int32_t i = 0; i < problem->n_items; i++) {
        const struct weft_item *item = &problem->items[i].item;
        if (!weft_problem_needs(problem, strategies, i)) continue;
        bool gathers = item->acquires;
        int32_t slot = gathers ? item->last - 1 : item->first + 1;
        if (slot < item->first || slot > item->last) slot = gathers ? item->first : item->last;
        for (int32_t b = 0; b < item->n_blocks; b++, n++)
            places[n] = (struct place){gathers ? item->last : item->first, n, {i, slot, 0}};
    }
    qsort(places, (size_t)n, sizeof *places, compare_places);
    for (int32_t i = 0; i < n; i++)
        moves[i] = places[i].move;
    status = weft_plan_create(problem, "rehearsal", strategies, moves, n, out, err);
done:
    free(moves);
    free(places);
    free(strategies);
    return status;
}

enum weft_status weft_measure_rehearsed_step(const struct weft_config *config,
                                             const struct weft_profile *profile, int64_t *step_ns,
                                             struct weft_error *err)
{
    struct weft_stages stages = {0};
    struct weft_plan *plan = NULL;
    struct weft_config own = *config;
    own.plan.target = WEFT_FOR_WEFT;
    WEFT_TRY(weft_stages_create(&own, profile, &stages, err));
    enum weft_status status = weft_measure_rehearsal_plan(config, stages.problem, &plan, err);
    if (status == WEFT_OK) status = weft_plan_predict(plan, err);
    if (status == WEFT_OK) *step_ns = plan->prediction.step_ns;
    weft_plan_destroy(plan);
    weft_stages_finish(&stages);
    return status;
}
