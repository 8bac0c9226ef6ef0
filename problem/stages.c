/* SPDX-License-Identifier: Apache-2.0 */
#include "problem/stages.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/units.h"
#include "memory_model/moves.h"
#include "problem/extremes.h"
#include "problem/item_times.h"
#include "problem/unit_layers.h"
#include "spec/config_batch.h"
#include "spec/target.h"

/* A unit of 2^53 bytes is one block of this size. */
enum { MOST_DOUBLINGS = 30 };

/* Input and output of the functions that fill a problem. */
struct builder {
    const struct weft_config *config;
    const struct weft_profile *profile;
    const struct weft_stages *stages;
    struct weft_problem *problem;
    uint32_t allowed;                        /* allowed policies: bit p */
    int32_t kinds[WEFT_WAYS];                /* index of the problem's kind, for units */
    int32_t saved_kinds[WEFT_LAYER_CHOICES]; /* index of the problem's kind, for layers */
    struct weft_weigh_options weigh;
    struct weft_error *err;
};

static enum weft_status layer_times(const struct builder *b, int32_t layer,
                                    struct weft_layer_times *out)
{
    const struct weft_layer *what = &b->config->model->layers[layer];
    const char *key = weft_layer_key(&b->problem->pool, what, &b->stages->variant.batch);
    if (key == NULL) return weft_fail_memory(b->err, "problem");
    const struct weft_layer_times *times = weft_profile_times(b->profile, what->name, key);
    if (times == NULL)
        return weft_fail_lacking(
            b->err, WEFT_E_DATA, WEFT_LACK_TIMES, 0,
            "%s profile (%s): no times for layer %s (%s); run `weft profile %s -o profile.json` "
            "and give --profile profile.json",
            b->profile->source, b->profile->machine, what->name, key, b->config->source);
    *out = *times;
    return WEFT_OK;
}

/* Elements of trainable units that one rank owns when everything is sharded. The norm takes the
 * time of these under any policy: with dp, too, one rank counts each element. */
static int64_t sharded_elements(const struct weft_shards *shards)
{
    int64_t elements = 0;
    for (int32_t u = 0; u < shards->n_units; u++) {
        if (shards->units[u].trainable)
            elements += shards->units[u].trained_elements / shards->ranks;
    }
    return elements;
}

/* The strategies of a layer; NULL if its saved activations are no decision. */
static const struct weft_weighed_layer *find_weighed(const struct builder *b, int32_t layer)
{
    const struct weft_weights *weights = b->stages->weights;
    for (int32_t i = 0; i < weights->n_layers; i++)
        if (weights->layers[i].layer == layer) return &weights->layers[i];
    return NULL;
}

/* Time of a layer's slot at a level of recomputation. */
static enum weft_status level_ns(const struct builder *b, struct weft_slot slot,
                                 enum weft_recompute level, int64_t *out)
{
    struct weft_layer_times times = {0};
    const bool forward = slot.kind == WEFT_SLOT_FORWARD;
    WEFT_TRY(layer_times(b, slot.index, &times));
    const struct weft_pass_times *pass =
        b->problem->period.layers > 0 ? weft_layer_times_in_pass(&times, level, slot.micro > 0)
                                      : NULL;
    if (pass != NULL) {
        *out = forward ? pass->forward_ns : pass->backward_ns;
        return WEFT_OK;
    }
    if (level == WEFT_RECOMPUTE_NONE) {
        *out = forward ? times.forward_ns : times.backward_ns;
        return WEFT_OK;
    }
    const struct weft_level_times *at = weft_layer_times_at(&times, level);
    if (at == NULL)
        return weft_fail_lacking(
            b->err, WEFT_E_DATA, WEFT_LACK_TIMES, 0,
            "%s profile (%s): no times for layer %s (%s) with %s recomputation; run `weft profile "
            "%s -o profile.json` and give --profile profile.json",
            b->profile->source, b->profile->machine, b->config->model->layers[slot.index].name,
            times.key, weft_recompute_names[level], b->config->source);
    *out = forward ? at->forward_ns : at->backward_ns;
    return WEFT_OK;
}

/* The least time of a layer's slot over its strategies. Each strategy adds the rest. */
static enum weft_status common_ns(const struct builder *b, struct weft_slot slot, int64_t *out)
{
    const struct weft_weighed_layer *layer = find_weighed(b, slot.index);
    if (layer == NULL) return level_ns(b, slot, WEFT_RECOMPUTE_NONE, out);
    int64_t least = INT64_MAX;
    for (int32_t k = 0; k < layer->n_strategies; k++) {
        int64_t ns = 0;
        WEFT_TRY(level_ns(b, slot, layer->strategies[k].choice.recompute, &ns));
        if (ns < least) least = ns;
    }
    *out = least;
    return WEFT_OK;
}

/* Whether a step ends with a norm. Without clipping a period that Weft runs is rotated. A delayed
 * period always has a norm. */
static bool ends_with_norm(const struct builder *b)
{
    const bool clips = b->config->train.clip_norm > 0;
    return weft_period_norms(&b->problem->period) &&
           (clips || !weft_config_target(b->config)->is_foreign);
}

static enum weft_status fill_slot(struct builder *b, int32_t s)
{
    static const char letters[WEFT_SLOT_KIND_COUNT] = {
        [WEFT_SLOT_UPDATE] = 'U', [WEFT_SLOT_FORWARD] = 'F', [WEFT_SLOT_BACKWARD] = 'B'};
    struct weft_problem *problem = b->problem;
    struct weft_slot slot = b->stages->period->slots[s];
    const char *owner = NULL;
    problem->slots[s] = slot;
    bool computes = slot.kind == WEFT_SLOT_FORWARD || slot.kind == WEFT_SLOT_BACKWARD;
    if (computes) {
        WEFT_TRY(common_ns(b, slot, &problem->slot_ns[s]));
        owner = b->config->model->layers[slot.index].name;
        problem->slots[s].syncs = b->config->model->layers[slot.index].syncs_host &&
                                  weft_config_target(b->config)->runs_ahead;
    } else if (slot.kind == WEFT_SLOT_NORM && ends_with_norm(b)) {
        problem->slot_ns[s] = weft_curve_at(&b->profile->norm, sharded_elements(b->stages->shards));
    } else if (slot.kind == WEFT_SLOT_UPDATE) {
        owner = b->stages->shards->units[slot.index].name;
    }
    char number[16] = "";
    const bool drains = slot.kind == WEFT_SLOT_DRAIN && s != b->stages->period->drain;
    if ((computes && problem->period.n_micro > 1) || drains)
        snprintf(number, sizeof number, "%d", slot.micro + 1);
    problem->slot_names[s] =
        owner == NULL
            ? weft_pool_format(&problem->pool, "%s%s", weft_slot_kind_name(slot.kind), number)
            : weft_pool_format(&problem->pool, "%c%s:%s", letters[slot.kind], number, owner);
    return problem->slot_names[s] == NULL ? weft_fail_memory(b->err, "problem") : WEFT_OK;
}

static enum weft_status fill_slots(struct builder *b)
{
    struct weft_problem *problem = b->problem;
    size_t n = (size_t)b->stages->period->n_slots;
    problem->n_slots = b->stages->period->n_slots;
    problem->slots = weft_pool_array(&problem->pool, n, sizeof *problem->slots);
    problem->slot_names = weft_pool_array(&problem->pool, n, sizeof *problem->slot_names);
    problem->slot_ns = weft_pool_array(&problem->pool, n, sizeof *problem->slot_ns);
    if (problem->slots == NULL || problem->slot_names == NULL || problem->slot_ns == NULL) {
        return weft_fail_memory(b->err, "problem");
    }
    for (int32_t s = 0; s < problem->n_slots; s++)
        WEFT_TRY(fill_slot(b, s));
    return WEFT_OK;
}

static enum weft_status copy_holds(struct builder *b, const struct weft_hold *holds, int32_t n,
                                   struct weft_hold **out, int32_t *n_out)
{
    *out = weft_pool_array(&b->problem->pool, (size_t)n, sizeof **out);
    if (*out == NULL) return weft_fail_memory(b->err, "problem");
    for (int32_t i = 0; i < n; i++)
        (*out)[i] = holds[i];
    *n_out = n;
    return WEFT_OK;
}

/* A unit that can have none of the allowed policies gets sdp, which equals fsdp for a unit that is
 * never released, or zero1 if frozen. A frozen one gets hsdp in place of nodes. dp is refused if
 * gradients are reduced several times a step. */
static enum weft_status policies_of(const struct builder *b, int32_t unit, uint32_t *out)
{
    const struct weft_weighed_unit *weighed = &b->stages->weights->units[unit];
    if (weft_weighed_strategies(weighed, b->allowed) != 0) {
        *out = b->allowed;
        if (weft_weighed_strategies(weighed, b->allowed & 1u << WEFT_POLICY_ZERO1) != 0)
            *out &= ~weft_variants_dominated(b->config);
        return WEFT_OK;
    }
    if (b->stages->shards->units[unit].trainable && weft_policies_are_whole(b->allowed)) {
        return weft_fail(
            b->err, WEFT_E_DATA,
            "%s: $.plan.policies: \"%s\" is all that unit %s may have, which it cannot when "
            "gradients are reduced several times a step, updates are delayed or the host updates "
            "state: set train.reduce to \"step\" (without train.group), train.delay to 0 and "
            "plan.offload.update to \"device\", or allow zero1",
            b->config->source, b->config->plan.policies, b->stages->shards->units[unit].name);
    }
    const bool frozen = !b->stages->shards->units[unit].trainable;
    const bool in_node = frozen && (b->allowed >> WEFT_POLICY_NODES & 1) != 0;
    const enum weft_policy sharded = in_node ? WEFT_POLICY_HSDP : WEFT_POLICY_SDP;
    *out = 1u << (weft_policies_are_whole(b->allowed) ? WEFT_POLICY_DP : sharded);
    return WEFT_OK;
}

/* Whether any layer has the alternative. */
static bool has_choice(const struct weft_weights *weights, struct weft_layer_choice choice)
{
    for (int32_t i = 0; i < weights->n_layers; i++)
        for (int32_t k = 0; k < weights->layers[i].n_strategies; k++)
            if (weft_layer_choice_number(weights->layers[i].strategies[k].choice) ==
                weft_layer_choice_number(choice))
                return true;
    return false;
}

/* Kinds are the strategies of any unit: policies in their order with state on the device, then with
 * offloaded state, and again with parameters on the host. */
static enum weft_status fill_kinds(struct builder *b)
{
    struct weft_problem *problem = b->problem;
    bool found[WEFT_WAYS] = {false};
    problem->kinds =
        weft_pool_array(&problem->pool, WEFT_WAYS + WEFT_LAYER_CHOICES, sizeof *problem->kinds);
    if (problem->kinds == NULL) return weft_fail_memory(b->err, "problem");
    for (int32_t u = 0; u < b->stages->weights->n_units; u++) {
        uint32_t own = 0;
        const struct weft_weighed_unit *weighed = &b->stages->weights->units[u];
        WEFT_TRY(policies_of(b, u, &own));
        for (int32_t k = 0; k < weighed->n_strategies; k++)
            if (own >> weighed->strategies[k].way.policy & 1u)
                found[weft_way_number(weighed->strategies[k].way)] = true;
    }
    for (int i = 0; i < WEFT_WAYS; i++) {
        if (!found[i]) continue;
        b->kinds[i] = problem->n_kinds;
        problem->kinds[problem->n_kinds++] = weft_way_name(weft_way_at(i));
    }
    for (int number = 0; number < WEFT_LAYER_CHOICES; number++) {
        struct weft_layer_choice choice;
        if (!weft_layer_choice_at(number, &choice) || !has_choice(b->stages->weights, choice))
            continue;
        b->saved_kinds[number] = problem->n_kinds;
        problem->kinds[problem->n_kinds++] = weft_layer_choice_name(choice);
    }
    return WEFT_OK;
}

static enum weft_status fill_strategy(struct builder *b, int32_t u,
                                      const struct weft_weighed_strategy *from,
                                      struct weft_problem_strategy *to)
{
    const struct weft_shards *shards = b->stages->shards;
    const struct weft_unit *unit = &shards->units[u];
    to->kind = b->kinds[weft_way_number(from->way)];
    to->name = b->problem->kinds[to->kind];
    weft_strategy_take_way(to, from->way);
    WEFT_TRY(copy_holds(b, from->holds, from->n_holds, &to->holds, &to->n_holds));
    if (!unit->trainable || to->updates_on_host) return WEFT_OK;
    const int64_t owned = unit->trained_elements / weft_shards_sharers(shards, to->policy);
    int64_t ns = weft_curve_at(&b->profile->update, owned);
    /* The owner counts all of it in the norm, a slot of another decision. */
    if (weft_policy_is_central(to->policy) && ends_with_norm(b))
        ns += weft_curve_at(&b->profile->norm, owned) -
              weft_curve_at(&b->profile->norm, owned / shards->ranks);
    to->times = weft_pool_array(&b->problem->pool, 1, sizeof *to->times);
    if (to->times == NULL) return weft_fail_memory(b->err, "problem");
    to->times[0] = (struct weft_slot_time){b->stages->period->update[u], ns};
    to->n_times = 1;
    return WEFT_OK;
}

/* Adds a layer's times beyond those common to its strategies, in order of slots. */
static enum weft_status fill_times(struct builder *b, int32_t layer,
                                   struct weft_problem_strategy *to)
{
    const struct weft_problem *problem = b->problem;
    to->times =
        weft_pool_array(&b->problem->pool, 2 * (size_t)problem->period.n_micro, sizeof *to->times);
    if (to->times == NULL) return weft_fail_memory(b->err, "problem");
    for (int32_t s = 0; s < problem->n_slots; s++) {
        const struct weft_slot slot = problem->slots[s];
        int64_t ns = 0;
        if ((slot.kind != WEFT_SLOT_FORWARD && slot.kind != WEFT_SLOT_BACKWARD) ||
            slot.index != layer)
            continue;
        WEFT_TRY(level_ns(b, slot, to->recompute, &ns));
        if (ns == problem->slot_ns[s]) continue;
        to->times[to->n_times++] = (struct weft_slot_time){s, ns - problem->slot_ns[s]};
    }
    return WEFT_OK;
}

static enum weft_status fill_layer(struct builder *b, const struct weft_weighed_layer *from,
                                   struct weft_problem_decision *to)
{
    struct weft_problem *problem = b->problem;
    to->name = weft_pool_format(&problem->pool, WEFT_SAVED_PREFIX "%s",
                                b->config->model->layers[from->layer].name);
    to->strategies =
        weft_pool_array(&problem->pool, (size_t)from->n_strategies, sizeof *to->strategies);
    if (to->name == NULL || to->strategies == NULL) return weft_fail_memory(b->err, "problem");
    to->update_slot = -1;
    to->is_of_layer = true;
    to->layer = from->layer;
    for (; to->n_strategies < from->n_strategies; to->n_strategies++) {
        const struct weft_weighed_saved *saved = &from->strategies[to->n_strategies];
        struct weft_problem_strategy *strategy = &to->strategies[to->n_strategies];
        strategy->kind = b->saved_kinds[weft_layer_choice_number(saved->choice)];
        strategy->name = problem->kinds[strategy->kind];
        strategy->policy = WEFT_POLICY_COUNT;
        strategy->location = saved->choice.saved_location;
        strategy->recompute = saved->choice.recompute;
        strategy->input = saved->choice.input_location;
        WEFT_TRY(fill_times(b, from->layer, strategy));
        WEFT_TRY(copy_holds(b, saved->holds, saved->n_holds, &strategy->holds, &strategy->n_holds));
    }
    return WEFT_OK;
}

static enum weft_status fill_decisions(struct builder *b)
{
    const struct weft_shards *shards = b->stages->shards;
    const struct weft_weights *weights = b->stages->weights;
    struct weft_problem *problem = b->problem;
    problem->n_decisions = shards->n_units + weights->n_layers;
    problem->decisions =
        weft_pool_array(&problem->pool, (size_t)problem->n_decisions, sizeof *problem->decisions);
    if (problem->decisions == NULL) return weft_fail_memory(b->err, "problem");
    for (int32_t u = 0; u < shards->n_units; u++) {
        const struct weft_weighed_unit *weighed = &weights->units[u];
        struct weft_problem_decision *to = &problem->decisions[u];
        uint32_t policies = 0;
        WEFT_TRY(policies_of(b, u, &policies));
        to->name = weft_pool_string(&problem->pool, shards->units[u].name);
        to->strategies =
            weft_pool_array(&problem->pool, (size_t)weighed->n_strategies, sizeof *to->strategies);
        if (to->name == NULL || to->strategies == NULL) return weft_fail_memory(b->err, "problem");
        to->update_slot = b->stages->period->update[u];
        to->elements = shards->units[u].padded_elements;
        to->frozen_elements = shards->units[u].trainable * (shards->units[u].padded_elements -
                                                            shards->units[u].trained_elements);
        for (int32_t k = 0; k < weighed->n_strategies; k++) {
            const struct weft_weighed_strategy *from = &weighed->strategies[k];
            if (policies >> from->way.policy & 1u)
                WEFT_TRY(fill_strategy(b, u, from, &to->strategies[to->n_strategies++]));
        }
    }
    for (int32_t i = 0; i < weights->n_layers; i++)
        WEFT_TRY(fill_layer(b, &weights->layers[i], &problem->decisions[shards->n_units + i]));
    return copy_holds(b, weights->common, weights->n_common, &problem->common, &problem->n_common);
}

/* The item's strategies that the problem has, by their index there. */
static uint64_t strategies_of(const struct builder *b, const struct weft_item *item)
{
    if (weft_item_moves_saved(item)) return item->strategies;
    const struct weft_weighed_unit *weighed = &b->stages->weights->units[item->decision];
    const struct weft_problem_decision *to = &b->problem->decisions[item->decision];
    uint64_t strategies = 0;
    for (int32_t from = 0, k = 0; from < weighed->n_strategies && k < to->n_strategies; from++) {
        const struct weft_way way = weft_strategy_way(&to->strategies[k]);
        if (weft_way_number(weighed->strategies[from].way) != weft_way_number(way)) continue;
        strategies |= (item->strategies >> from & 1u) << k++;
    }
    return strategies;
}

/* The moves of a unit's item: of its first strategy. Its others have the same move of its kind. */
static struct weft_moves moves_of(const struct weft_problem *problem, const struct weft_item *item)
{
    const struct weft_problem_decision *of = &problem->decisions[item->decision];
    int32_t k = 0;
    while (!(item->strategies >> k & 1u))
        k++;
    return weft_moves_of(weft_strategy_way(&of->strategies[k]), problem->period.every > 0);
}

static enum weft_rank_group group_of(const struct weft_problem *problem,
                                     const struct weft_item *item)
{
    if (problem->decisions[item->decision].is_of_layer) return WEFT_GROUP_NONE;
    const struct weft_moves moves = moves_of(problem, item);
    return weft_moves_find(&moves, item->kind)->group;
}

/* Finds the lane of an item and the time of a block. With a lane across nodes, collectives of all
 * ranks are on that lane: they share the links between nodes with sums over nodes. */
static struct weft_problem_item of_lane(const struct builder *b, const struct weft_item *item)
{
    const enum weft_rank_group group = group_of(b->problem, item);
    const bool of_all = group == WEFT_GROUP_ALL || group == WEFT_GROUP_OWNER;
    const bool of_level = group == WEFT_GROUP_NODE || group == WEFT_GROUP_ACROSS;
    const enum weft_lane_role role = weft_item_kind_of(item)->role;
    struct weft_item moved = *item;
    /* The owner's port moves all of the block for each other rank, and not a part. */
    if (group == WEFT_GROUP_OWNER) moved.block_bytes *= b->config->cluster.ranks;
    struct weft_problem_item out = {
        .item = *item,
        .lane =
            weft_problem_lane_of(b->problem, of_all && b->weigh.hybrid ? WEFT_ROLE_ACROSS : role),
        .block_ns =
            of_level ? weft_item_level_ns(b->profile, &b->config->cluster, group, item)
                     : weft_item_ns(b->profile, &b->problem->period, b->weigh.accumulate, &moved),
        .after = -1};
    if (item->kind == WEFT_AVERAGE && b->problem->period.gossip)
        out.block_ns = weft_item_pair_ns(b->profile, &b->config->cluster, item);
    if (weft_item_averages(item)) {
        out.average_ns = out.block_ns;
        out.block_ns = out.average_ns / b->problem->period.every;
        out.phase = weft_config_average_phase(b->config,
                                              b->stages->shards->units[item->decision].layers[0]);
    }
    return out;
}

/* Whether item `at` follows `before` (memory_model/moves.h), apart from their kinds. */
static bool follows_item(const struct weft_moves *moves, const struct weft_item *at,
                         const struct weft_item *before)
{
    const bool once = weft_moves_find(moves, at->kind)->count == WEFT_ITEM_ONCE;
    const bool before_once = weft_moves_find(moves, before->kind)->count == WEFT_ITEM_ONCE;
    return (at->strategies & before->strategies) != 0 &&
           (once && !before_once ? true : at->gather == before->gather);
}

/* Links an item to the last one that it follows, of its decision's from `first` on. */
static void link_item(struct weft_problem *problem, int32_t first, int32_t at)
{
    struct weft_problem_item *it = &problem->items[at];
    const struct weft_moves moves = moves_of(problem, &it->item);
    const int32_t after = weft_moves_find(&moves, it->item.kind)->after;
    for (int32_t i = first; after >= 0 && i < problem->n_items; i++) {
        const struct weft_item *before = &problem->items[i].item;
        if (before->decision != it->item.decision) break;
        if (before->kind == after && follows_item(&moves, &it->item, before)) it->after = i;
    }
}

static void link_items(struct weft_problem *problem)
{
    int32_t first = 0;
    for (int32_t i = 0; i < problem->n_items; i++) {
        const int32_t decision = problem->items[i].item.decision;
        if (problem->items[first].item.decision != decision) first = i;
        if (!problem->decisions[decision].is_of_layer) link_item(problem, first, i);
    }
}

static enum weft_status fill_items(struct builder *b)
{
    const struct weft_weights *weights = b->stages->weights;
    struct weft_problem *problem = b->problem;
    problem->items =
        weft_pool_array(&problem->pool, (size_t)weights->n_items, sizeof *problem->items);
    if (problem->items == NULL) return weft_fail_memory(b->err, "problem");
    for (int32_t i = 0; i < weights->n_items; i++) {
        struct weft_item item = weights->items[i];
        item.strategies = strategies_of(b, &item);
        if (item.strategies == 0) continue; /* no allowed policy has it */
        problem->items[problem->n_items++] = of_lane(b, &item);
    }
    link_items(problem);
    return WEFT_OK;
}

/* Names the key if the host's limit is too small for the checkpoints alone. */
static enum weft_status check_kept(const struct builder *b)
{
    char kept[WEFT_UNITS_TEXT_BYTES], limit[WEFT_UNITS_TEXT_BYTES];
    const int64_t limit_bytes = b->config->cluster.host.memory_limit_bytes;
    const int64_t kept_bytes = b->weigh.kept_bytes;
    if (kept_bytes <= limit_bytes) return WEFT_OK;
    return weft_fail(b->err, WEFT_E_INFEASIBLE,
                     "train.checkpoint.host: checkpoints of two steps take %s (%" PRId64
                     " bytes) of host memory a rank, and cluster.host.memory_limit is %s: raise it "
                     "to %" PRId64 "B, start more ranks, or set train.checkpoint.host to 0",
                     weft_units_show_bytes(kept_bytes, kept), kept_bytes,
                     weft_units_show_bytes(limit_bytes, limit), kept_bytes);
}

/* Adds the host's tier if it may hold anything, its lanes of copies, and its lane of updates. */
static enum weft_status fill_host(struct builder *b)
{
    struct weft_problem *problem = b->problem;
    const int locations = weft_weigh_locations(&b->weigh),
              moved = weft_weigh_moved_locations(&b->weigh);
    if ((locations & 1 << WEFT_LOCATION_HOST) == 0) return WEFT_OK;
    WEFT_TRY(check_kept(b));
    problem->tiers[problem->n_tiers++] = (struct weft_problem_tier){
        "host", WEFT_LOCATION_HOST, b->config->cluster.host.memory_limit_bytes};
    if ((moved & 1 << WEFT_LOCATION_HOST) == 0) return WEFT_OK;
    WEFT_TRY(weft_problem_add_lane(problem, "down", WEFT_LANE_KIND_DOWN, b->err));
    WEFT_TRY(weft_problem_add_lane(problem, "up", WEFT_LANE_KIND_UP, b->err));
    if ((b->weigh.state_keeps & 1 << WEFT_KEEP_HOST_UPDATE) == 0) return WEFT_OK;
    return weft_problem_add_lane(problem, "host", WEFT_LANE_KIND_HOST, b->err);
}

/* Adds the disk's tier if it may hold state, and its lanes: one if it is half duplex. */
static enum weft_status fill_disk(struct builder *b)
{
    struct weft_problem *problem = b->problem;
    const bool half = b->profile->tiers.disk.duplex == WEFT_DUPLEX_HALF;
    if ((b->weigh.state_keeps & 1 << WEFT_KEEP_DISK) == 0) return WEFT_OK;
    problem->tiers[problem->n_tiers++] =
        (struct weft_problem_tier){"disk", WEFT_LOCATION_DISK, b->config->cluster.disk.limit_bytes};
    WEFT_TRY(weft_problem_add_lane(problem, half ? "disk" : "read", WEFT_LANE_KIND_READ, b->err));
    return half ? WEFT_OK : weft_problem_add_lane(problem, "write", WEFT_LANE_KIND_WRITE, b->err);
}

static enum weft_status fill_problem(struct builder *b)
{
    const struct weft_config *config = b->config;
    struct weft_problem *problem = b->problem;
    int64_t limit_bytes = config->cluster.memory_limit_bytes;
    problem->ranks = config->cluster.ranks;
    weft_problem_device_alone(problem, limit_bytes == 0 ? INT64_MAX : limit_bytes);
    problem->config_hash = config->hash;
    problem->profile_hash = b->profile->hash;
    problem->target = config->plan.target;
    problem->agree_ns = b->profile->agree_ns;
    /* Without rates, the profile was measured without contention. */
    const struct weft_rates full = {WEFT_RATE_ONE, WEFT_RATE_ONE};
    WEFT_TRY(weft_problem_networks(problem, (int32_t)config->cluster.channels,
                                   b->profile->rates.compute > 0 ? b->profile->rates : full,
                                   b->err));
    if (b->weigh.hybrid || config->train.every > 0)
        problem->ranks_per_node = config->cluster.ranks_per_node;
    if (problem->ranks_per_node > 0) {
        WEFT_TRY(weft_problem_add_lane(problem, "across", WEFT_LANE_KIND_ACROSS, b->err));
        problem->lanes[problem->n_lanes - 1].rates = problem->lanes[WEFT_LANE_FIRST].rates;
    }
    WEFT_TRY(fill_host(b));
    WEFT_TRY(fill_disk(b));
    problem->period = b->stages->period->rule;
    if (config->train.asked.micro_batch == 0)
        problem->micro_batch = b->stages->variant.batch.samples;
    problem->profile_source = weft_pool_string(&problem->pool, b->profile->source);
    if (problem->profile_source == NULL) return weft_fail_memory(b->err, "problem");
    WEFT_TRY(fill_slots(b));
    WEFT_TRY(fill_kinds(b));
    WEFT_TRY(fill_decisions(b));
    WEFT_TRY(fill_items(b));
    const char *where = config->source == NULL ? "config" : config->source;
    return weft_problem_link(problem, where, b->err);
}

static enum weft_status check_problem(const struct builder *b)
{
    const struct weft_config *config = b->config;
    const struct weft_problem *problem = b->problem;
    const char *where = config->source == NULL ? "config" : config->source;
    struct weft_error why = {0};
    enum weft_status status = weft_problem_check(problem, where, &why);
    if (status == WEFT_OK) return WEFT_OK;
    WEFT_TRY(weft_extremes_check(config, problem, b->stages->shards, b->err));
    return weft_fail(b->err, status, "%s", why.text);
}

/* Makes shards, period and weights. Their errors do not name the config's file, so this adds it. */
static enum weft_status create_parts(const struct weft_config *config,
                                     const struct weft_block_rule *rule,
                                     const struct weft_weigh_options *options,
                                     struct weft_stages *stages, struct weft_error *err)
{
    struct weft_error why = {0};
    enum weft_status status =
        weft_shards_create(config->model, config->cluster.ranks, rule, &stages->shards, &why);
    if (status == WEFT_OK) stages->shards->ranks_per_node = config->cluster.ranks_per_node;
    if (status == WEFT_OK && config->train.every > 0) weft_shards_split(stages->shards);
    if (status == WEFT_OK)
        status = weft_period_create(config->model, stages->shards, &stages->variant.rule,
                                    &stages->period, &why);
    if (status == WEFT_OK)
        status = weft_weights_create(config->model, stages->shards, stages->period, options,
                                     &stages->weights, &why);
    if (status == WEFT_OK) return WEFT_OK;
    return weft_fail(err, status, "%s: %s", config->source == NULL ? "config" : config->source,
                     why.text);
}

/* Applies a variant's size of blocks to the usual rule. */
static void scale_blocks(enum weft_block_scale scale, struct weft_block_rule *rule)
{
    switch (scale) {
    case WEFT_BLOCKS_HALF:
        rule->block_bytes = rule->block_bytes > 1 ? rule->block_bytes / 2 : 1;
        rule->blocks *= 2;
        return;
    case WEFT_BLOCKS_TWICE:
        rule->block_bytes *= 2;
        rule->blocks = (rule->blocks + 1) / 2;
        return;
    case WEFT_BLOCKS_WHOLE:
        rule->blocks = 1;
        return;
    case WEFT_BLOCKS_USUAL:
    case WEFT_BLOCKS_AUTO:
    case WEFT_BLOCK_SCALE_COUNT:
        return;
    }
}

/* Doublings of the size of blocks after which a problem with too many has few enough; 0: the config
 * gives the size, or no size is large enough. */
static int32_t doublings_for(const struct weft_config *config, const struct weft_problem *problem)
{
    const int64_t whole = 2 * (int64_t)problem->n_items;
    const int64_t few = whole > WEFT_PROBLEM_FEW_BLOCKS ? whole : WEFT_PROBLEM_FEW_BLOCKS;
    if (config->plan.blocks > 0 || config->plan.block_bytes > 0) return 0;
    for (int32_t doublings = 0; doublings <= MOST_DOUBLINGS; doublings++) {
        int64_t n = 0;
        for (int32_t i = 0; i < problem->n_items; i++)
            n += ((problem->items[i].item.n_blocks - 1) >> doublings) + 1;
        if (doublings == 0 && n <= WEFT_PROBLEM_MOST_BLOCKS) return 0;
        if (n <= few) return doublings;
    }
    return 0;
}

/* `doublings`: of the size of blocks by efficiency. *more: doublings with which the stages have few
 * enough blocks, if they have too many; otherwise 0. */
static enum weft_status create_stages(const struct weft_config *config,
                                      const struct weft_profile *profile, int32_t doublings,
                                      struct weft_stages *stages, int32_t *more,
                                      struct weft_error *err)
{
    struct weft_block_rule rule = {
        .blocks = config->plan.blocks,
        .block_bytes = config->plan.block_bytes,
        .element_bytes = weft_dtype_bytes(stages->variant.batch.compute),
        /* Fused layers would be averaged in one step, and profiles decide on them. */
        .fuse = config->plan.fuse && config->train.fragments == 1,
    };
    if (rule.block_bytes == 0)
        rule.block_bytes = weft_profile_block_bytes(profile, config->plan.block_efficiency)
                           << doublings;
    scale_blocks(stages->variant.scale, &rule);
    rule.whole_layers = weft_config_target(config)->whole_layers;
    rule.reads_all = weft_config_target(config)->gathers_all;
    rule.joins = config->joins;
    if (rule.whole_layers) rule.blocks = 1;
    struct weft_weigh_options options =
        weft_stages_weigh_options(config, profile, &stages->variant);
    WEFT_TRY(create_parts(config, &rule, &options, stages, err));
    stages->problem = calloc(1, sizeof *stages->problem);
    if (stages->problem == NULL) return weft_fail_memory(err, "problem");
    stages->problem->blocks = (struct weft_problem_blocks){
        .least_bytes = rule.blocks > 0 ? 0 : rule.block_bytes,
        .count = rule.blocks,
        .efficiency_ppm = rule.blocks > 0 || config->plan.block_bytes > 0
                              ? 0
                              : (int64_t)(config->plan.block_efficiency * 1e6 + 0.5),
        .fused = rule.fuse && rule.blocks <= 0,
        .scale = (int64_t)stages->variant.scale,
        .doublings = doublings,
    };
    struct builder builder = {.config = config,
                              .profile = profile,
                              .stages = stages,
                              .problem = stages->problem,
                              .weigh = options,
                              .err = err};
    WEFT_TRY(weft_variants_policies(config, &builder.allowed, err));
    if ((builder.allowed & weft_policies_sharing(WEFT_GROUP_NODE)) != 0)
        WEFT_TRY(weft_item_need_levels(profile, config, err));
    if (config->train.every > 0) WEFT_TRY(weft_average_need(profile, config, err));
    *more = 0;
    WEFT_TRY(fill_problem(&builder));
    *more = doublings == 0 ? doublings_for(config, stages->problem) : 0;
    if (*more > 0) return WEFT_OK;
    WEFT_TRY(check_problem(&builder));
    return weft_problem_name_layers(stages->problem, config->model, stages->shards, err);
}

enum weft_status weft_stages_create(const struct weft_config *config,
                                    const struct weft_profile *profile, struct weft_stages *out,
                                    struct weft_error *err)
{
    struct weft_variant variants[WEFT_MOST_VARIANTS];
    (void)weft_variants_list(config, variants);
    return weft_stages_create_variant(config, profile, &variants[0], out, err);
}

enum weft_status weft_stages_create_variant(const struct weft_config *config,
                                            const struct weft_profile *profile,
                                            const struct weft_variant *variant,
                                            struct weft_stages *out, struct weft_error *err)
{
    const int64_t ranks = weft_config_together(config);
    if (profile->ranks != ranks)
        return weft_fail(err, WEFT_E_DATA,
                         "the profile was made for %" PRId64 " ranks, the config has %" PRId64
                         "; run `weft profile` with as many",
                         profile->ranks, ranks);
    struct weft_stages stages = {.variant = *variant};
    int32_t doublings = 0;
    enum weft_status status = create_stages(config, profile, 0, &stages, &doublings, err);
    if (status == WEFT_OK && doublings > 0) {
        weft_stages_finish(&stages);
        stages = (struct weft_stages){.variant = *variant};
        status = create_stages(config, profile, doublings, &stages, &doublings, err);
    }
    if (status != WEFT_OK) {
        weft_stages_finish(&stages);
        return status;
    }
    *out = stages;
    return WEFT_OK;
}

void weft_stages_finish(struct weft_stages *stages)
{
    weft_problem_destroy(stages->problem);
    weft_weights_destroy(stages->weights);
    weft_period_destroy(stages->period);
    weft_shards_destroy(stages->shards);
    *stages = (struct weft_stages){0};
}
