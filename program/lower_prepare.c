/* SPDX-License-Identifier: Apache-2.0 */
/* Prepares lowering. Checks that plan and stages belong together, and lists locations of state,
 * saved activations and inputs, and the units of each layer. */

#include "base/checked.h"
#include "program/lower.h"

/* Lists the units of every layer from the layers of every unit. */
static enum weft_status list_layer_units(struct weft_lowering *lowering, struct weft_error *err)
{
    const struct weft_shards *shards = lowering->inputs->shards;
    size_t n_layers = (size_t)lowering->inputs->model->n_layers;
    int32_t *first = weft_pool_array(&lowering->pool, n_layers + 1, sizeof *first);
    int32_t *filled = weft_pool_array(&lowering->pool, n_layers, sizeof *filled);
    if (first == NULL || filled == NULL) return weft_fail_memory(err, "program");
    for (int32_t u = 0; u < shards->n_units; u++) {
        for (int32_t i = 0; i < shards->units[u].n_layers; i++)
            first[shards->units[u].layers[i] + 1]++;
    }
    for (size_t l = 0; l < n_layers; l++)
        first[l + 1] += first[l];
    lowering->layer_units =
        weft_pool_array(&lowering->pool, (size_t)first[n_layers], sizeof *lowering->layer_units);
    if (lowering->layer_units == NULL) return weft_fail_memory(err, "program");
    for (int32_t u = 0; u < shards->n_units; u++) {
        const struct weft_unit *unit = &shards->units[u];
        for (int32_t i = 0; i < unit->n_layers; i++) {
            int32_t layer = unit->layers[i];
            lowering->layer_units[first[layer] + filled[layer]++] =
                (struct weft_layer_unit){u, unit->reads_in_backward[i]};
        }
    }
    lowering->first_layer_unit = first;
    return WEFT_OK;
}

static int32_t first_strategy(const struct weft_item *item)
{
    int32_t k = 0;
    while (!(item->strategies >> k & 1))
        k++;
    return k;
}

/* Blocks of a copy of a layer's activations: of its input, or of what its strategy's level of
 * recomputation keeps. -1: there is no such copy. */
static int32_t saved_blocks_of(const struct weft_lowering *lowering, const struct weft_item *item)
{
    const struct weft_problem_decision *decision =
        &lowering->plan->problem->decisions[item->decision];
    const struct weft_layer_work *works = lowering->works;
    const enum weft_recompute level = decision->strategies[first_strategy(item)].recompute;
    if (!weft_item_kind_is_of_input(item->kind))
        return weft_weigh_saved_blocks(
            &lowering->inputs->weigh,
            weft_layer_work_at(&works[decision->layer], level).saved_bytes);
    if (decision->layer == 0) return -1;
    return weft_weigh_saved_blocks(&lowering->inputs->weigh,
                                   works[decision->layer - 1].output_bytes);
}

/* Blocks of an item with these stages. */
static int32_t blocks_of(const struct weft_lowering *lowering, const struct weft_item *item)
{
    const struct weft_lower_inputs *inputs = lowering->inputs;
    const struct weft_problem *problem = lowering->plan->problem;
    const struct weft_item_kind *kind = weft_item_kind_of(item);
    if (kind->family == WEFT_ITEM_SAVED) return saved_blocks_of(lowering, item);
    const struct weft_unit *unit = &inputs->shards->units[item->decision];
    if (weft_item_kind_is_in_blocks(kind)) return unit->n_blocks;
    if (kind->other_tier != WEFT_LOCATION_HOST) return 1;
    const struct weft_problem_decision *decision = &problem->decisions[item->decision];
    const enum weft_policy policy = decision->strategies[first_strategy(item)].policy;
    return weft_weigh_state_blocks(&inputs->weigh, unit->padded_elements /
                                                       weft_shards_sharers(inputs->shards, policy));
}

/* Whether the plan's problem is that of these stages, as far as lowering relies on it. */
static bool belongs_to_stages(const struct weft_lowering *lowering)
{
    const struct weft_problem *problem = lowering->plan->problem;
    const struct weft_lower_inputs *inputs = lowering->inputs;
    const struct weft_period *period = inputs->period;
    if (problem->n_slots != period->n_slots ||
        weft_problem_n_units(problem) != inputs->shards->n_units ||
        problem->period.group != period->rule.group ||
        problem->period.layers != period->rule.layers ||
        problem->period.rotated != period->rule.rotated ||
        problem->period.delayed != period->rule.delayed ||
        problem->period.update_after != period->rule.update_after ||
        problem->period.every != period->rule.every ||
        problem->period.gossip != period->rule.gossip ||
        problem->period.agreed_updates != period->rule.agreed_updates) {
        return false;
    }
    for (int32_t s = 0; s < period->n_slots; s++) {
        struct weft_slot a = problem->slots[s], b = period->slots[s];
        if (a.kind != b.kind || a.index != b.index || a.micro != b.micro) return false;
    }
    for (int32_t i = 0; i < problem->n_items; i++) {
        const struct weft_item *item = &problem->items[i].item;
        if (item->n_blocks != blocks_of(lowering, item)) return false;
        if (item->kind == WEFT_ALL_GATHER && item->gather >= period->n_uses[item->decision])
            return false;
    }
    return true;
}

/* Takes each layer's level of recomputation, and its buffers at that level. */
static enum weft_status list_recomputes(struct weft_lowering *lowering, struct weft_error *err)
{
    struct weft_program *program = lowering->program;
    const struct weft_problem *problem = lowering->plan->problem;
    enum weft_recompute *levels =
        weft_pool_array(&program->pool, (size_t)program->n_layers, sizeof *levels);
    if (levels == NULL) return weft_fail_memory(err, "program");
    for (int32_t d = program->n_units; d < problem->n_decisions; d++) {
        const struct weft_problem_strategy *chosen = weft_plan_chosen(lowering->plan, d);
        const int32_t layer = problem->decisions[d].layer;
        if (chosen->recompute == WEFT_RECOMPUTE_NONE) continue;
        if (!lowering->works[layer].splits[chosen->recompute].possible)
            return weft_fail(err, WEFT_E_DATA,
                             "the plan gives %s the strategy %s, and backward of a %s cannot "
                             "restore what forward drops; plan again",
                             problem->decisions[d].name, chosen->name,
                             weft_layer_type_of(&lowering->inputs->model->layers[layer]));
        levels[layer] = chosen->recompute;
        lowering->works[layer] = weft_layer_work_at(&lowering->works[layer], chosen->recompute);
        program->recomputes = levels;
    }
    return WEFT_OK;
}

/* The first layer's input is the batch: it is held until the first layer's backward, even if that
 * does not read it. */
static enum weft_status list_reads(struct weft_lowering *lowering, struct weft_error *err)
{
    struct weft_program *program = lowering->program;
    program->reads =
        weft_pool_array(&program->pool, (size_t)program->n_layers, sizeof *program->reads);
    if (program->reads == NULL) return weft_fail_memory(err, "program");
    for (int32_t l = 0; l < program->n_layers; l++)
        program->reads[l] = (struct weft_layer_reads){
            l == 0 || lowering->works[l].backward_reads_input,
            lowering->works[l].backward_reads_output, l > 0 && lowering->works[l].reads_padding};
    return WEFT_OK;
}

/* Places bytes of a layer in the host's memory, of one or all micro-steps, after those of earlier
 * calls. */
static enum weft_status place_on_host(struct weft_program *program, int32_t layer, int64_t bytes,
                                      int64_t **at, struct weft_error *err)
{
    if (*at == NULL) {
        *at = weft_pool_array(&program->pool, (size_t)program->n_layers, sizeof **at);
        if (*at == NULL) return weft_fail_memory(err, "program");
        for (int32_t l = 0; l < program->n_layers; l++)
            (*at)[l] = -1;
    }
    (*at)[layer] = program->host_bytes;
    if (!weft_checked_round_up(bytes, WEFT_HOST_PAGE_BYTES, &bytes) ||
        !weft_checked_mul(bytes, weft_period_places(&program->period), &bytes) ||
        !weft_checked_add(program->host_bytes, bytes, &program->host_bytes))
        return weft_fail(err, WEFT_E_DATA, "the host's memory holds more than can be counted");
    return WEFT_OK;
}

/* Places offloaded activations and inputs in the host's memory, one layer after the other. At a
 * turning point all of them are there at once. */
static enum weft_status list_saved(struct weft_lowering *lowering, struct weft_error *err)
{
    struct weft_program *program = lowering->program;
    const struct weft_problem *problem = lowering->plan->problem;
    const struct weft_layer_work *works = lowering->works;
    for (int32_t d = program->n_units; d < problem->n_decisions; d++) {
        const struct weft_problem_strategy *chosen = weft_plan_chosen(lowering->plan, d);
        const int32_t l = problem->decisions[d].layer;
        if (chosen->location == WEFT_LOCATION_HOST)
            WEFT_TRY(place_on_host(program, l, works[l].saved_bytes, &program->saved_at, err));
        if (chosen->input != WEFT_LOCATION_HOST) continue;
        if (l == 0)
            return weft_fail(err, WEFT_E_DATA,
                             "the plan offloads the first layer's input, which is a batch; plan "
                             "again");
        WEFT_TRY(place_on_host(program, l, works[l - 1].output_bytes, &program->inputs_at, err));
    }
    return WEFT_OK;
}

static enum weft_status copy_lanes(const struct weft_problem *problem, struct weft_program *program,
                                   struct weft_error *err)
{
    program->n_lanes = problem->n_lanes;
    program->lanes =
        weft_pool_array(&program->pool, (size_t)problem->n_lanes, sizeof *program->lanes);
    if (program->lanes == NULL) return weft_fail_memory(err, "program");
    for (int32_t lane = 0; lane < problem->n_lanes; lane++) {
        program->lanes[lane] = problem->lanes[lane];
        program->lanes[lane].name = weft_pool_string(&program->pool, problem->lanes[lane].name);
        if (program->lanes[lane].name == NULL) return weft_fail_memory(err, "program");
    }
    return WEFT_OK;
}

/* Programs keep saved activations on the device or the host. */
static enum weft_status check_lowers(const struct weft_plan *plan, struct weft_error *err)
{
    const struct weft_problem *problem = plan->problem;
    for (int32_t d = weft_problem_n_units(problem); d < problem->n_decisions; d++) {
        const struct weft_problem_strategy *chosen = weft_plan_chosen(plan, d);
        if (chosen->location == WEFT_LOCATION_DISK)
            return weft_fail(err, WEFT_E_DATA,
                             "the plan gives %s the strategy %s: programs keep saved activations "
                             "on the device or in the host's memory; plan again",
                             problem->decisions[d].name, chosen->name);
    }
    return WEFT_OK;
}

enum weft_status weft_lower_prepare(struct weft_lowering *lowering, struct weft_error *err)
{
    const struct weft_lower_inputs *inputs = lowering->inputs;
    const struct weft_plan *plan = lowering->plan;
    struct weft_program *program = lowering->program;
    WEFT_TRY(check_lowers(plan, err));
    int32_t n_layers = inputs->model->n_layers;
    lowering->works = weft_pool_array(&lowering->pool, (size_t)n_layers, sizeof *lowering->works);
    if (lowering->works == NULL) return weft_fail_memory(err, "program");
    for (int32_t l = 0; l < n_layers; l++)
        WEFT_TRY(weft_weigh_layer_work(&inputs->weigh, &inputs->model->layers[l], &lowering->pool,
                                       &lowering->works[l], err));
    if (!belongs_to_stages(lowering)) {
        return weft_fail(err, WEFT_E_DATA,
                         "the plan has %d slots, %d units and %d items, the model %d slots and %d "
                         "units: they do not belong together; plan again",
                         plan->problem->n_slots, weft_problem_n_units(plan->problem),
                         plan->problem->n_items, inputs->period->n_slots, inputs->shards->n_units);
    }
    program->n_slots = plan->problem->n_slots;
    program->n_units = weft_problem_n_units(plan->problem);
    program->n_layers = n_layers;
    program->period = plan->problem->period;
    program->ways =
        weft_pool_array(&program->pool, (size_t)program->n_units, sizeof *program->ways);
    if (program->ways == NULL) return weft_fail_memory(err, "program");
    for (int32_t u = 0; u < program->n_units; u++)
        program->ways[u] = weft_strategy_way(weft_plan_chosen(plan, u));
    WEFT_TRY(copy_lanes(plan->problem, program, err));
    program->base_bytes = inputs->weigh.base_bytes;
    program->ring = weft_weigh_ring(&inputs->weigh, inputs->shards);
    program->comm_bytes = program->staging_bytes = inputs->weigh.staging_bytes;
    if (weft_weigh_staging_tier(&inputs->weigh) == 0)
        program->staging_bytes += weft_ring_bytes(&program->ring);
    WEFT_TRY(list_recomputes(lowering, err));
    WEFT_TRY(list_reads(lowering, err));
    WEFT_TRY(list_saved(lowering, err));
    WEFT_TRY(list_layer_units(lowering, err));
    return weft_lower_buffers(lowering, err);
}
