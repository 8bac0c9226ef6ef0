/* SPDX-License-Identifier: Apache-2.0 */
/* Items: gathers, reductions, and copies of state, saved activations and inputs. */
#include "base/checked.h"
#include "memory_model/moves.h"
#include "memory_model/weigh.h"
#include "memory_model/weigh_parts.h"

static void add_item(struct weft_weigher *w, struct weft_item item)
{
    int64_t bytes = 0;
    w->overflow |= !weft_checked_mul(item.stair_bytes, item.n_blocks, &bytes);
    weft_weigh_count_bytes(w, bytes);
    w->weights->items[w->weights->n_items++] = item;
}

/* The first slot that may launch a unit's gather for a step: after its update, or for a frozen unit
 * after the last step's uses. */
static int32_t first_launch(const struct weft_weigher *w, int32_t u)
{
    const struct weft_period *period = w->period;
    if (period->rule.agreed_updates || weft_weigh_target(w)->updates_first) return period->fill;
    if (period->update[u] >= 0) return period->update[u] + 1;
    return period->rule.rotated ? period->drain : 0;
}

/* The first slot that may launch a unit's update on the host: after norm. In a rotated period it is
 * the slot of an update on the device, when all ranks' gradients are known to be finite. */
static int32_t first_host_update(const struct weft_period *period, int32_t u)
{
    return period->rule.rotated ? period->update[u] : 0;
}

/* A forward launches its own gathers alone, not those of the next micro-step. A gather for its
 * first slot must block there, as one for the first backward; its window is the slot before. */
static void keep_in_micro_step(const struct weft_period *period, int32_t use,
                               struct weft_item *item)
{
    const struct weft_slot slot = period->slots[use];
    const int32_t begin = period->forward[slot.micro * period->n_layers];
    if (slot.kind == WEFT_SLOT_FORWARD && item->first < begin) item->first = begin;
    if (item->first > item->last) item->first = item->last;
}

/* Whether a unit begins its forward or its backward in the slot. */
static bool begins_unit(const struct weft_weigher *w, int32_t slot)
{
    const struct weft_slot at = w->period->slots[slot];
    for (int32_t u = 0; u < w->shards->n_units; u++) {
        const struct weft_unit *unit = &w->shards->units[u];
        const int32_t last = unit->layers[unit->n_layers - 1];
        if (at.kind == WEFT_SLOT_FORWARD && unit->layers[0] == at.index) return true;
        if (at.kind == WEFT_SLOT_BACKWARD && last == at.index) return true;
    }
    return false;
}

/* Limits the window of a gather to the launches of `ahead` units before its use. With `prefetches`
 * the unit before launches it in backward at the latest. */
static void keep_ahead(const struct weft_weigher *w, int32_t use, struct weft_item *item)
{
    const struct weft_slot *slots = w->period->slots;
    const int32_t most = w->options->ahead > 0 ? w->options->ahead : INT32_MAX;
    const bool backward = slots[use].kind == WEFT_SLOT_BACKWARD;
    int32_t slot = use - 1, found = 0, latest = -1;
    if (w->options->ahead == 0 && !w->options->prefetches) return;
    for (; slot >= 0 && slots[slot].kind == slots[use].kind && found < most; slot--) {
        if (!begins_unit(w, slot)) continue;
        if (found++ == 0) latest = slot;
    }
    if (item->first <= slot && (found == most || (backward && w->options->ahead > 0)))
        item->first = slot + 1;
    if (backward && w->options->prefetches && latest >= item->first) item->may_block = false;
    if (item->first > item->last) item->first = item->last;
}

/* The first slot that may launch a gather of updated parameters. */
static int32_t first_updated(const struct weft_weigher *w, const struct weft_moves *moves,
                             int32_t u)
{
    const bool on_host = weft_moves_find(moves, WEFT_PARAMETERS_UP) != NULL;
    return on_host ? first_host_update(w->period, u) : first_launch(w, u);
}

/* The slot by the end of which a round's gradient must be reduced: before its update, before the
 * next round's is added to the same slice, and before the period's end. A delayed update is in the
 * next period. There the next step's first gradient, if the period has it, or the norm ends the
 * window. */
static int32_t last_completion(const struct weft_period *period, int32_t u, int32_t micro)
{
    const int32_t next_step = period->first_gradient[u];
    if (period->rule.delayed) return (next_step > period->update[u] ? next_step : period->norm) - 1;
    if (micro + 1 == period->rule.n_micro)
        return period->rule.rotated ? period->update[u] - 1 : period->drain;
    int32_t next = period->last_gradient[(micro + period->rule.group) * period->n_units + u];
    return next > period->last_gradient[micro * period->n_units + u] ? next : period->norm - 1;
}

/* Cuts an item of one block. The blocks hold the same bytes, and the last may copy fewer. */
static void cut_item(struct weft_item *item, int32_t n_blocks)
{
    if (n_blocks == 1) return;
    item->n_blocks = n_blocks;
    item->stair_bytes /= n_blocks;
    item->block_bytes = item->stair_bytes;
}

/* A unit with its gathers in a period, and the moves of its strategies. */
struct mover {
    struct weft_weigher *w;
    int32_t u, n_gathers;
    int32_t *uses;  /* [n_gathers]: index of the gather's first use */
    bool *keeps_to; /* [n_gathers]: a unit that keeps its parameters gathers for it too */
    struct weft_moves moves[WEFT_WAYS]; /* by strategy */
};

/* Lists the gathers of units that release parameters, each from its first use to the release. */
static enum weft_status list_gathers(struct mover *m, struct weft_error *err)
{
    const struct weft_weighed_unit *weighed = &m->w->weights->units[m->u];
    const size_t n_uses = (size_t)m->w->period->n_uses[m->u];
    m->uses = weft_pool_array(&m->w->weights->pool, n_uses, sizeof *m->uses);
    m->keeps_to = weft_pool_array(&m->w->weights->pool, n_uses, sizeof *m->keeps_to);
    if (m->uses == NULL || m->keeps_to == NULL) return weft_fail_memory(err, "weights");
    int32_t kept = 0;
    m->n_gathers = 0;
    for (int32_t i = 0; i < (int32_t)n_uses;
         i = weft_weigh_policy_end(m->w, m->u, WEFT_POLICY_FSDP, i)) {
        while (kept < i)
            kept = weft_weigh_policy_end(m->w, m->u, WEFT_POLICY_SDP, kept);
        m->keeps_to[m->n_gathers] = kept == i;
        m->uses[m->n_gathers++] = i;
    }
    for (int32_t k = 0; k < weighed->n_strategies; k++)
        m->moves[k] = weft_moves_of(weighed->strategies[k].way, m->w->period->rule.every > 0);
    return WEFT_OK;
}

/* A gather has a window before its use, after the update or the use before. Units updated on the
 * host may be gathered from that update on. */
static void window_gather(const struct mover *m, const struct weft_moves *moves,
                          struct weft_item *item)
{
    const struct weft_weigher *w = m->w;
    const struct weft_period *period = w->period;
    const int32_t u = m->u, i = m->uses[item->gather], *uses = period->uses[u];
    item->last = uses[i] - 1;
    if (item->gather == 0) {
        item->first = first_updated(w, moves, u);
    } else {
        const int32_t released = weft_weigh_release(w, u, i - 1);
        /* In a rotated period the turning point is between the two uses, and no window crosses the
         * ends. */
        item->first = uses[i] > released ? released + 1 : 0;
        if (weft_weigh_target(w)->in_order) keep_in_micro_step(period, uses[i], item);
    }
    keep_ahead(w, uses[i], item);
}

static void fill_gather(struct mover *m, const struct weft_moves *moves,
                        const struct weft_unit_move *move, struct weft_item *item)
{
    struct weft_weigher *w = m->w;
    const struct weft_unit *unit = &w->shards->units[m->u];
    const bool pools = weft_weigh_target(w)->flat_buffers && w->options->pools;
    window_gather(m, moves, item);
    item->block_bytes =
        weft_weigh_elements_bytes(w, unit->padded_elements, w->options->batch.compute) /
        unit->n_blocks;
    item->stair_bytes = move->from == move->to || pools ? 0 : item->block_bytes;
    item->stair_category = WEFT_CATEGORY_GATHERED_PARAMETERS;
}

static void fill_reduction(struct mover *m, const struct weft_unit_move *move,
                           struct weft_item *item)
{
    struct weft_weigher *w = m->w;
    const int32_t u = m->u;
    const struct weft_unit *unit = &w->shards->units[u];
    const struct weft_period *period = w->period;
    const int32_t micro = weft_period_round_end(&period->rule, item->gather);
    const bool flat = weft_weigh_target(w)->flat_buffers;
    item->first = period->rule.delayed ? period->update[u] + 1
                                       : period->last_gradient[micro * period->n_units + u] + 1;
    item->last = last_completion(period, u, micro);
    if (flat) {
        const struct weft_window window = weft_weigh_reduction(w, u, micro);
        item->first = window.first;
        item->last = window.last;
    }
    item->block_bytes =
        weft_weigh_elements_bytes(w, unit->trained_elements, w->options->reduce) / unit->n_blocks;
    /* In flat buffers and in place, the strategy's holds have them. */
    item->stair_bytes = flat || move->from == move->to ? 0 : item->block_bytes;
    item->stair_category = WEFT_CATEGORY_FULL_GRADIENTS;
}

/* Sums of partial sums over nodes, in fp32, in the windows of the reductions within the node that
 * they follow. A block of partial sums, of a node's slice, is held from the first of these to its
 * sum. */
static void fill_across(struct mover *m, enum weft_policy policy, struct weft_item *item)
{
    struct weft_weigher *w = m->w;
    const struct weft_period *period = w->period;
    const int32_t u = m->u, micro = weft_period_round_end(&period->rule, item->gather);
    const int64_t slice = weft_weigh_shard_elements(w, u, policy) / item->n_blocks;
    item->first = period->last_gradient[micro * period->n_units + u] + 1;
    item->last = last_completion(period, u, micro);
    item->block_bytes = item->stair_bytes = weft_weigh_elements_bytes(w, slice, WEFT_F32);
    item->stair_category = WEFT_CATEGORY_SHARDED_GRADIENTS;
}

/* Updated parameters come from the other nodes after the unit's update, before its first use. They
 * land in the shard, which the holds have, so blocking a slot for them gains nothing. On their way
 * to the host the copy down has them, in the same window. */
static void fill_crossing(struct mover *m, const struct weft_moves *moves, struct weft_item *item)
{
    struct weft_weigher *w = m->w;
    const int32_t u = m->u;
    const int64_t slice = weft_weigh_shard_elements(w, u, moves->policy) / item->n_blocks;
    item->may_block = false;
    item->first = first_updated(w, moves, u);
    item->last = w->period->uses[u][0] - (item->acquires ? 1 : 2);
    item->block_bytes = weft_weigh_elements_bytes(w, slice, w->options->batch.compute);
    item->stair_category = WEFT_CATEGORY_SHARDED_PARAMETERS;
}

/* State arrives before or in its update's slot, and leaves after it. To a disk it moves in one item
 * of whole disk blocks. */
static void fill_state(struct mover *m, enum weft_policy policy, struct weft_item *item)
{
    struct weft_weigher *w = m->w;
    const int32_t u = m->u, update = w->period->update[u];
    const enum weft_location location = weft_item_kind_of(item)->other_tier;
    item->n_blocks = 1;
    item->first = item->acquires ? 0 : update + 1;
    item->last = item->acquires ? update - 1 : w->period->n_slots - 2;
    item->stair_bytes = weft_weigh_state_bytes(w, u, policy, WEFT_ARENA_ALIGN_BYTES);
    item->stair_category = WEFT_CATEGORY_OPTIMIZER_STATE;
    item->block_bytes = weft_weigh_state_bytes(
        w, u, policy, location == WEFT_LOCATION_DISK ? WEFT_DISK_ALIGN_BYTES : 1);
    if (location == WEFT_LOCATION_HOST)
        cut_item(item,
                 weft_weigh_state_blocks(w->options, weft_weigh_owned_elements(w, u, policy)));
}

/* A host update goes block by block: gradient down after its last reduction, update after norm,
 * parameters up before their gather. The last two hold no device bytes, so blocking a slot for them
 * gains nothing. */
static void fill_host_update(struct mover *m, enum weft_policy policy, struct weft_item *item)
{
    struct weft_weigher *w = m->w;
    const struct weft_period *period = w->period;
    const int32_t u = m->u, last_micro = period->rule.n_micro - 1;
    const int64_t slice = weft_weigh_owned_elements(w, u, policy) / item->n_blocks;
    item->may_block = false;
    item->first = first_host_update(period, u);
    item->last = period->uses[u][0] - 1;
    item->stair_category = WEFT_CATEGORY_SHARDED_PARAMETERS;
    if (item->kind == WEFT_GRADIENT_DOWN) {
        item->first = period->last_gradient[last_micro * period->n_units + u] + 1;
        item->last = last_completion(period, u, last_micro);
        item->block_bytes = weft_weigh_elements_bytes(w, slice, w->options->accumulate);
        item->stair_bytes = item->block_bytes;
        item->stair_category = WEFT_CATEGORY_SHARDED_GRADIENTS;
    } else if (item->kind == WEFT_HOST_UPDATE) {
        w->overflow |=
            !weft_checked_mul(slice, weft_weigh_update_bytes(w->options), &item->block_bytes);
    } else {
        item->block_bytes = weft_weigh_elements_bytes(w, slice, w->options->batch.compute);
    }
}

/* Copies of a shard on the host: down after the unit's update, and up before each gather that
 * follows, in the gather's window and blocks. */
static void fill_parameters(struct mover *m, const struct weft_moves *moves, struct weft_item *item)
{
    struct weft_weigher *w = m->w;
    const int32_t u = m->u;
    const int64_t slice = weft_weigh_shard_elements(w, u, moves->policy) / item->n_blocks;
    item->first = w->period->update[u] + 1;
    item->last = w->period->uses[u][0] - 2; /* the copy up follows it */
    if (item->kind == WEFT_PARAMETERS_FETCH) window_gather(m, moves, item);
    item->may_block = item->acquires;
    item->block_bytes = weft_weigh_elements_bytes(w, slice, w->options->batch.compute);
    item->stair_bytes = item->block_bytes;
    item->stair_category = WEFT_CATEGORY_SHARDED_PARAMETERS;
}

/* An average is between a unit's update and its first use, in place. The ranks of a node average
 * their own slices, of all nodes' masters in fp32. */
static void fill_average(struct mover *m, struct weft_item *item)
{
    struct weft_weigher *w = m->w;
    const int32_t u = m->u;
    const struct weft_unit *unit = &w->shards->units[u];
    const int64_t elements =
        item->kind == WEFT_AVERAGE ? unit->slice_elements : unit->padded_elements / unit->n_blocks;
    item->may_block = false;
    item->first = first_launch(w, u);
    item->last = w->period->uses[u][0] - 1;
    item->block_bytes = weft_weigh_elements_bytes(w, elements, WEFT_F32);
    item->stair_category = WEFT_CATEGORY_OPTIMIZER_STATE;
}

static void fill_item(struct mover *m, const struct weft_moves *moves,
                      const struct weft_unit_move *move, struct weft_item *item)
{
    switch (weft_item_kinds[move->kind].family) {
    case WEFT_ITEM_COLLECTIVE:
        if (move->kind == WEFT_ALL_GATHER)
            fill_gather(m, moves, move, item);
        else if (move->kind == WEFT_ACROSS_GATHER)
            fill_crossing(m, moves, item);
        else if (move->from == WEFT_BUFFER_PARTIAL)
            fill_across(m, moves->policy, item);
        else
            fill_reduction(m, move, item);
        break;
    case WEFT_ITEM_STATE:
        fill_state(m, moves->policy, item);
        break;
    case WEFT_ITEM_HOST_UPDATE:
        fill_host_update(m, moves->policy, item);
        break;
    case WEFT_ITEM_PARAMETERS:
        fill_parameters(m, moves, item);
        break;
    case WEFT_ITEM_AVERAGE:
        fill_average(m, item);
        break;
    case WEFT_ITEM_SAVED:
        break;
    }
}

/* Whether a move has item number `gather` in a period. */
static bool has_item(const struct mover *m, const struct weft_moves *moves,
                     const struct weft_unit_move *move, int32_t gather)
{
    const bool trains = move->from == WEFT_BUFFER_GRADIENT || move->from == WEFT_BUFFER_PARTIAL ||
                        weft_item_kinds[move->kind].family == WEFT_ITEM_AVERAGE;
    if (trains && !m->w->shards->units[m->u].trainable) return false;
    if (move->count == WEFT_ITEM_A_REDUCTION)
        return gather < weft_period_reductions(&m->w->period->rule);
    if (move->count != WEFT_ITEM_A_USE) return gather == 0;
    return gather < m->n_gathers &&
           (weft_policy_groups[moves->policy].releases || m->keeps_to[gather]);
}

/* Adds the items of a kind and number, in order of their ways. */
static void item_moves(struct mover *m, int32_t kind, int32_t gather)
{
    struct weft_weigher *w = m->w;
    struct weft_item items[WEFT_MOST_ORDERS] = {0};
    for (int32_t k = 0; k < w->weights->units[m->u].n_strategies; k++) {
        const struct weft_unit_move *move = weft_moves_find(&m->moves[k], kind);
        if (move == NULL || !has_item(m, &m->moves[k], move, gather)) continue;
        struct weft_item *item = &items[weft_moves_order(&m->moves[k], move, gather)];
        if (item->strategies == 0) {
            const bool acquires = weft_moves_acquire(&m->moves[k], kind);
            *item = (struct weft_item){.decision = m->u,
                                       .kind = kind,
                                       .acquires = acquires,
                                       .may_block = acquires,
                                       .gather = gather,
                                       .n_blocks = w->shards->units[m->u].n_blocks};
            fill_item(m, &m->moves[k], move, item);
        }
        item->strategies |= UINT64_C(1) << k;
    }
    for (int order = 0; order < WEFT_MOST_ORDERS; order++)
        if (items[order].strategies != 0) add_item(w, items[order]);
}

static enum weft_status item_unit(struct weft_weigher *w, int32_t u, struct weft_error *err)
{
    struct mover m = {.w = w, .u = u};
    WEFT_TRY(list_gathers(&m, err));
    const int32_t reductions = weft_period_reductions(&w->period->rule);
    const int32_t most = m.n_gathers > reductions ? m.n_gathers : reductions;
    for (int32_t kind = 0; kind < WEFT_ITEM_KIND_COUNT; kind++)
        for (int32_t gather = 0; gather < most; gather++)
            item_moves(&m, kind, gather);
    return WEFT_OK;
}

/* Strategies of a layer that share their copies of one kind: of the input, or of what a level of
 * recomputation keeps. */
static uint64_t sharing_copies(const struct weft_weighed_layer *layer, int32_t k, bool of_input)
{
    const struct weft_layer_choice of = layer->strategies[k].choice;
    uint64_t strategies = 0;
    for (int32_t i = 0; i < layer->n_strategies; i++) {
        const struct weft_layer_choice choice = layer->strategies[i].choice;
        const bool shares = of_input ? choice.input_location == of.input_location
                                     : choice.saved_location == of.saved_location &&
                                           choice.recompute == of.recompute;
        strategies |= (uint64_t)shares << i;
    }
    return strategies;
}

/* The slot of a layer's first reader in backward: of its input or of its saved activations. */
static int32_t first_reader(const struct weft_weigher *w, int32_t layer, int32_t micro,
                            bool of_input)
{
    return of_input ? weft_weigh_input_reads(w, layer, micro).first
                    : w->period->backward[micro * w->model->n_layers + layer];
}

/* A layer's activations go down between its forward and the end of the micro-step's last forward.
 * They come up between the beginning of the last layer's backward and their first reader. If other
 * micro-steps run through the layer in between, they go down before the first backward, and come up
 * after the last forward. */
static void item_saved(struct weft_weigher *w, int32_t at, int32_t k, int32_t kind, int32_t gather)
{
    const struct weft_weighed_layer *layer = &w->weights->layers[at];
    const int32_t last_layer = w->model->n_layers - 1, micro = gather * w->model->n_layers;
    const int32_t last_micro = (w->period->rule.n_micro - 1) * w->model->n_layers;
    const bool up = weft_item_kinds[kind].acquires, of_input = weft_item_kind_is_of_input(kind);
    const struct weft_weighed_saved *of = &layer->strategies[k];
    const int32_t reader = first_reader(w, layer->layer, gather, of_input);
    const int32_t turn = weft_period_turn(&w->period->rule, w->model->n_layers);
    /* Other micro-steps run in between. */
    const bool apart = (up ? w->period->slots[reader].index : layer->layer) < turn;
    const int64_t bytes = of_input ? of->input_bytes : of->saved_bytes;
    const uint64_t strategies = sharing_copies(layer, k, of_input);
    if ((strategies & ((UINT64_C(1) << k) - 1)) != 0) return; /* an earlier one has added it */
    struct weft_item item = {
        .decision = w->weights->n_units + at,
        .kind = kind,
        .acquires = up,
        .may_block = up,
        .gather = gather,
        .strategies = strategies,
        .n_blocks = 1,
        .first = up ? w->period->backward[(apart ? last_micro : micro) + last_layer]
                    : w->period->forward[micro + layer->layer] + 1,
        .last = up ? reader - 1 : w->period->forward[(apart ? 0 : micro) + last_layer],
        .block_bytes = bytes,
        .stair_bytes = weft_arena_round(bytes),
        .stair_category = WEFT_CATEGORY_ACTIVATIONS,
    };
    cut_item(&item, weft_weigh_saved_blocks(w->options, bytes));
    add_item(w, item);
}

/* Both copies of every strategy with saved activations, or the input, on the host. */
static void item_layer(struct weft_weigher *w, int32_t at)
{
    static const int32_t kinds[] = {WEFT_SAVED_DOWN, WEFT_SAVED_UP, WEFT_INPUT_DOWN, WEFT_INPUT_UP};
    const struct weft_weighed_layer *layer = &w->weights->layers[at];
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++)
        for (int32_t gather = 0; gather < w->period->rule.n_micro; gather++)
            for (int32_t k = 0; k < layer->n_strategies; k++) {
                const struct weft_layer_choice choice = layer->strategies[k].choice;
                const enum weft_location location = weft_item_kind_is_of_input(kinds[i])
                                                        ? choice.input_location
                                                        : choice.saved_location;
                if (location == WEFT_LOCATION_HOST) item_saved(w, at, k, kinds[i], gather);
            }
}

enum weft_status weft_weigh_items(struct weft_weigher *w, struct weft_error *err)
{
    /* Copies down and up, of the activations that each level keeps, and of the input. */
    enum { OF_LAYER = 2 * (WEFT_RECOMPUTE_COUNT + 1) };
    size_t most = OF_LAYER * (size_t)w->weights->n_layers * (size_t)w->period->rule.n_micro;
    for (int32_t u = 0; u < w->shards->n_units; u++)
        /* zero1's gather, gathers after host updates and after copies up, reductions, dp's, copies
         * of both kinds of state, the host update, and copies of parameters; gathers, reductions
         * and sums over nodes of hsdp and of nodes, and its gather across; the moves of nodes with
         * parameters on the host, and with updates there; both moves of central; both of an
         * average */
        most += 7 * (size_t)w->period->n_uses[u] + 5 * (size_t)w->period->rule.n_micro + 29;
    w->weights->items = weft_pool_array(&w->weights->pool, most, sizeof *w->weights->items);
    if (w->weights->items == NULL) return weft_fail_memory(err, "weights");
    for (int32_t u = 0; u < w->shards->n_units; u++)
        WEFT_TRY(item_unit(w, u, err));
    for (int32_t i = 0; i < w->weights->n_layers; i++)
        item_layer(w, i);
    return WEFT_OK;
}
