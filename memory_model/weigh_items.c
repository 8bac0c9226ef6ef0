/* SPDX-License-Identifier: Apache-2.0 */
/* Items: gathers, reductions, and copies of state and saved activations. */
#include "base/checked.h"
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

/* Whether sdp gathers for use `i`, which is not the first. */
static bool begins_sdp(const struct weft_weigher *w, int32_t u, int32_t i)
{
    int32_t begin = 0;
    while (begin < i)
        begin = weft_weigh_policy_end(w, u, WEFT_POLICY_SDP, begin);
    return begin == i;
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

static void item_gathers(struct weft_weigher *w, int32_t u)
{
    const struct weft_unit *unit = &w->shards->units[u];
    const struct weft_period *period = w->period;
    const int32_t *uses = period->uses[u];
    const struct weft_weighed_unit *weighed = &w->weights->units[u];
    const uint64_t there = weft_weighed_keeps(weighed, 1u << WEFT_KEEP_HOST_UPDATE);
    const uint64_t resides = weft_weighed_strategies(weighed, 1u << WEFT_POLICY_ZERO1);
    const uint64_t fetched = weft_weighed_parameters(weighed, WEFT_HOME_HOST);
    const uint64_t hybrid = weft_weighed_strategies(weighed, 1u << WEFT_POLICY_HSDP);
    const uint64_t central = weft_weighed_strategies(weighed, 1u << WEFT_POLICY_CENTRAL);
    const bool pools = weft_weigh_target(w)->flat_buffers && w->options->pools;
    const uint64_t gathers =
        weft_weighed_strategies(weighed, 1u << WEFT_POLICY_SDP | 1u << WEFT_POLICY_FSDP) & ~fetched;
    int64_t bytes = weft_weigh_elements_bytes(w, unit->padded_elements, w->options->batch.compute) /
                    unit->n_blocks;
    struct weft_item item = {
        .decision = u,
        .kind = WEFT_ALL_GATHER,
        .acquires = true,
        .may_block = true,
        .strategies = gathers & ~there,
        .n_blocks = unit->n_blocks,
        .first = first_launch(w, u),
        .last = uses[0] - 1,
        .block_bytes = bytes,
        .stair_bytes = pools ? 0 : bytes, /* in a pool of its own */
        .stair_category = WEFT_CATEGORY_GATHERED_PARAMETERS,
    };
    keep_ahead(w, uses[0], &item);
    /* Units updated on the host may be gathered from that update on. */
    for (int pass = 0; pass < 2; pass++) {
        struct weft_item resident = item;
        resident.strategies = resides & (pass == 0 ? ~there : there);
        resident.stair_bytes = 0;
        if (item.strategies != 0) add_item(w, item);
        if (resident.strategies != 0) add_item(w, resident);
        item.strategies = gathers & there;
        item.first = there != 0 ? first_host_update(period, u) : item.first;
    }
    item.strategies = fetched;
    item.first = first_launch(w, u);
    if (fetched != 0) add_item(w, item);
    item.strategies = hybrid;
    if (hybrid != 0) add_item(w, item);
    struct weft_item sent = item; /* by the owner, into buffers that are there */
    sent.strategies = central;
    sent.stair_bytes = 0;
    if (central != 0) add_item(w, sent);
    for (int32_t i = weft_weigh_policy_end(w, u, WEFT_POLICY_FSDP, 0); i < period->n_uses[u];
         i = weft_weigh_policy_end(w, u, WEFT_POLICY_FSDP, i)) {
        const int32_t released = weft_weigh_release(w, u, i - 1);
        item.gather++;
        item.strategies = weft_weighed_strategies(
            weighed, 1u << WEFT_POLICY_FSDP | (uint32_t)begins_sdp(w, u, i) << WEFT_POLICY_SDP);
        /* In a rotated period the turning point is between the two uses, and no window crosses the
         * ends. */
        item.first = uses[i] > released ? released + 1 : 0;
        item.last = uses[i] - 1;
        item.may_block = true;
        if (weft_weigh_target(w)->in_order) keep_in_micro_step(period, uses[i], &item);
        keep_ahead(w, uses[i], &item);
        const uint64_t of = item.strategies;
        item.strategies = of & ~fetched;
        if (item.strategies != 0) add_item(w, item);
        item.strategies = of & fetched;
        if (item.strategies != 0) add_item(w, item);
        item.strategies = hybrid;
        if (hybrid != 0) add_item(w, item);
    }
}

/* Adds the copies of a shard on the host: down after the unit's update, and up before each gather
 * that follows, in the gather's window and blocks. `first` to `last`: the unit's gathers. */
static void item_parameters(struct weft_weigher *w, int32_t u, int32_t first, int32_t last)
{
    const struct weft_weights *weights = w->weights;
    const struct weft_unit *unit = &w->shards->units[u];
    const int64_t slice = unit->padded_elements / w->shards->ranks / unit->n_blocks;
    const int64_t bytes = weft_weigh_elements_bytes(w, slice, w->options->batch.compute);
    const uint64_t fetched = weft_weighed_parameters(&weights->units[u], WEFT_HOME_HOST);
    struct weft_item item = {
        .decision = u,
        .kind = WEFT_PARAMETERS_DOWN,
        .strategies = fetched,
        .n_blocks = unit->n_blocks,
        .first = w->period->update[u] + 1,
        .last = w->period->uses[u][0] - 2, /* the copy up follows it */
        .block_bytes = bytes,
        .stair_bytes = bytes,
        .stair_category = WEFT_CATEGORY_SHARDED_PARAMETERS,
    };
    if (fetched == 0) return;
    add_item(w, item);
    item.kind = WEFT_PARAMETERS_FETCH;
    item.acquires = item.may_block = true;
    for (int32_t i = first; i < last; i++) {
        const struct weft_item *gather = &weights->items[i];
        if ((gather->strategies & fetched) == 0) continue;
        item.strategies = gather->strategies;
        item.gather = gather->gather;
        item.first = gather->first;
        item.last = gather->last;
        add_item(w, item);
    }
}

/* The slot by the end of which a round's gradient must be reduced: before its update, before the
 * next round's is added to the same slice, and before the period's end. A delayed update is in the
 * next period. There the next step's first gradient, or the norm, ends the window. */
static int32_t last_completion(const struct weft_period *period, int32_t u, int32_t micro)
{
    if (period->rule.delayed)
        return (period->rule.n_micro > 1 ? period->first_gradient[u] : period->norm) - 1;
    if (micro + 1 == period->rule.n_micro)
        return period->rule.rotated ? period->update[u] - 1 : period->drain;
    int32_t next = period->last_gradient[(micro + period->rule.group) * period->n_units + u];
    return next > period->last_gradient[micro * period->n_units + u] ? next : period->norm - 1;
}

static void item_reductions(struct weft_weigher *w, int32_t u)
{
    const struct weft_unit *unit = &w->shards->units[u];
    const struct weft_period *period = w->period;
    const struct weft_weighed_unit *weighed = &w->weights->units[u];
    uint64_t whole = weft_weighed_strategies(weighed, 1u << WEFT_POLICY_DP);
    const uint64_t hybrid = weft_weighed_strategies(weighed, 1u << WEFT_POLICY_HSDP);
    int32_t reductions = weft_period_reductions(&period->rule);
    int64_t bytes =
        weft_weigh_elements_bytes(w, unit->trained_elements, w->options->reduce) / unit->n_blocks;
    struct weft_item item = {
        .decision = u,
        .kind = WEFT_REDUCE_SCATTER,
        .strategies = weft_weighed_strategies(
            weighed, ~(1u << WEFT_POLICY_DP | 1u << WEFT_POLICY_HSDP | 1u << WEFT_POLICY_CENTRAL)),
        .n_blocks = unit->n_blocks,
        .block_bytes = bytes,
        .stair_bytes = bytes,
        .stair_category = WEFT_CATEGORY_FULL_GRADIENTS,
    };
    for (; item.gather < reductions; item.gather++) {
        int32_t micro = weft_period_round_end(&period->rule, item.gather);
        item.first = period->rule.delayed ? period->update[u] + 1
                                          : period->last_gradient[micro * period->n_units + u] + 1;
        item.last = last_completion(period, u, micro);
        if (weft_weigh_target(w)->flat_buffers) {
            const struct weft_window window = weft_weigh_reduction(w, u, micro);
            item.first = window.first;
            item.last = window.last;
            item.stair_bytes = 0; /* the strategy's holds have them */
        }
        add_item(w, item);
        struct weft_item of_node = item;
        of_node.strategies = hybrid;
        if (hybrid != 0) add_item(w, of_node);
    }
    item.gather = 0;
    item.stair_bytes = 0;
    item.strategies = weft_weighed_strategies(weighed, 1u << WEFT_POLICY_CENTRAL);
    if (item.strategies != 0) add_item(w, item); /* in place on the owner */
    item.kind = WEFT_ALL_REDUCE;
    item.strategies = whole;
    if (whole != 0) add_item(w, item);
}

/* Sums of partial sums over nodes, in fp32, in the windows of the reductions within the node that
 * they follow. A block of partial sums is held from the first of these to its sum. */
static void item_across(struct weft_weigher *w, int32_t u)
{
    const struct weft_unit *unit = &w->shards->units[u];
    const struct weft_period *period = w->period;
    const int32_t reductions = weft_period_reductions(&period->rule);
    const int64_t slice = weft_weigh_owned_elements(w, u, WEFT_POLICY_HSDP) / unit->n_blocks;
    const int64_t bytes = weft_weigh_elements_bytes(w, slice, WEFT_F32);
    struct weft_item item = {
        .decision = u,
        .kind = WEFT_ACROSS_REDUCE,
        .strategies = weft_weighed_strategies(&w->weights->units[u], 1u << WEFT_POLICY_HSDP),
        .n_blocks = unit->n_blocks,
        .block_bytes = bytes,
        .stair_bytes = bytes,
        .stair_category = WEFT_CATEGORY_SHARDED_GRADIENTS,
    };
    for (; item.strategies != 0 && item.gather < reductions; item.gather++) {
        const int32_t micro = weft_period_round_end(&period->rule, item.gather);
        item.first = period->last_gradient[micro * period->n_units + u] + 1;
        item.last = last_completion(period, u, micro);
        add_item(w, item);
    }
}

/* Cuts an item of one block. The blocks hold the same bytes, and the last may copy fewer. */
static void cut_item(struct weft_item *item, int32_t n_blocks)
{
    if (n_blocks == 1) return;
    item->n_blocks = n_blocks;
    item->stair_bytes /= n_blocks;
    item->block_bytes = item->stair_bytes;
}

/* State moves, that of dp (`whole`) or of the other policies. It arrives before or in its update's
 * slot, and leaves after it. To a disk it moves in one item of whole disk blocks. */
static void item_state(struct weft_weigher *w, int32_t u, int32_t kind, bool whole)
{
    const struct weft_weighed_unit *weighed = &w->weights->units[u];
    const enum weft_policy policy = whole ? WEFT_POLICY_DP : WEFT_POLICY_FSDP;
    const uint32_t dp = 1u << WEFT_POLICY_DP;
    const bool comes = weft_item_kinds[kind].acquires;
    int32_t update = w->period->update[u];
    struct weft_item item = {
        .decision = u,
        .kind = kind,
        .acquires = comes,
        .may_block = comes,
        .n_blocks = 1,
        .first = comes ? 0 : update + 1,
        .last = comes ? update - 1 : w->period->n_slots - 2,
        .stair_bytes = weft_weigh_state_bytes(w, u, policy, WEFT_ARENA_ALIGN_BYTES),
        .stair_category = WEFT_CATEGORY_OPTIMIZER_STATE,
    };
    const enum weft_home home = weft_item_kinds[kind].there;
    item.strategies = weft_weighed_keeps(weighed, 1u << home) &
                      weft_weighed_strategies(weighed, whole ? dp : ~dp);
    item.block_bytes =
        weft_weigh_state_bytes(w, u, policy, home == WEFT_HOME_DISK ? WEFT_DISK_ALIGN_BYTES : 1);
    if (home == WEFT_HOME_HOST)
        cut_item(&item,
                 weft_weigh_state_blocks(w->options, weft_weigh_owned_elements(w, u, policy)));
    if (item.strategies != 0) add_item(w, item);
}

/* A host update goes block by block: gradient down after its last reduction, update after norm,
 * parameters up before their gather. These items hold no device bytes, so blocking a slot for them
 * gains nothing. */
static void item_host_update(struct weft_weigher *w, int32_t u)
{
    const struct weft_unit *unit = &w->shards->units[u];
    const struct weft_period *period = w->period;
    const int32_t last_micro = period->rule.n_micro - 1;
    const int64_t slice = unit->padded_elements / w->shards->ranks / unit->n_blocks;
    const int64_t down_bytes = weft_weigh_elements_bytes(w, slice, w->options->accumulate);
    int64_t update_bytes = 0;
    struct weft_item item = {
        .decision = u,
        .kind = WEFT_GRADIENT_DOWN,
        .strategies = weft_weighed_keeps(&w->weights->units[u], 1u << WEFT_KEEP_HOST_UPDATE),
        .n_blocks = unit->n_blocks,
        .first = period->last_gradient[last_micro * period->n_units + u] + 1,
        .last = last_completion(period, u, last_micro),
        .block_bytes = down_bytes,
        .stair_bytes = down_bytes,
        .stair_category = WEFT_CATEGORY_SHARDED_GRADIENTS,
    };
    if (item.strategies == 0) return;
    add_item(w, item);
    w->overflow |= !weft_checked_mul(slice, weft_weigh_update_bytes(w->options), &update_bytes);
    item.kind = WEFT_HOST_UPDATE;
    item.acquires = true;
    item.first = first_host_update(period, u);
    item.last = period->uses[u][0] - 1;
    item.block_bytes = update_bytes;
    item.stair_bytes = 0;
    item.stair_category = WEFT_CATEGORY_SHARDED_PARAMETERS;
    add_item(w, item);
    item.kind = WEFT_PARAMETERS_UP;
    item.block_bytes = weft_weigh_elements_bytes(w, slice, w->options->batch.compute);
    add_item(w, item);
}

/* Saved activations go down between their layer's forward and the end of the last
 * forward. They come up between the beginning of the last layer's backward and their own. */
static void item_saved(struct weft_weigher *w, int32_t at, int32_t k, int32_t kind, int32_t gather)
{
    const struct weft_weighed_layer *layer = &w->weights->layers[at];
    const int32_t last_layer = w->model->n_layers - 1, micro = gather * w->model->n_layers;
    const bool up = weft_item_kinds[kind].acquires;
    struct weft_item item = {
        .decision = w->weights->n_units + at,
        .kind = kind,
        .acquires = up,
        .may_block = up,
        .gather = gather,
        .strategies = UINT64_C(1) << k,
        .n_blocks = 1,
        .first = up ? w->period->backward[micro + last_layer]
                    : w->period->forward[micro + layer->layer] + 1,
        .last = up ? w->period->backward[micro + layer->layer] - 1
                   : w->period->forward[micro + last_layer],
        .block_bytes = layer->strategies[k].saved_bytes,
        .stair_bytes = layer->strategies[k].holds[0].bytes,
        .stair_category = WEFT_CATEGORY_ACTIVATIONS,
    };
    cut_item(&item, weft_weigh_saved_blocks(w->options, layer->strategies[k].saved_bytes));
    add_item(w, item);
}

/* Both copies of every strategy with saved activations on the host. */
static void item_layer(struct weft_weigher *w, int32_t at)
{
    const struct weft_weighed_layer *layer = &w->weights->layers[at];
    for (int32_t kind = WEFT_SAVED_DOWN; kind <= WEFT_SAVED_UP; kind++)
        for (int32_t gather = 0; gather < w->period->rule.n_micro; gather++)
            for (int32_t k = 0; k < layer->n_strategies; k++)
                if (layer->strategies[k].choice.saved_home == WEFT_HOME_HOST)
                    item_saved(w, at, k, kind, gather);
}

enum weft_status weft_weigh_items(struct weft_weigher *w, struct weft_error *err)
{
    /* Copies down and up, of all saved activations or of those that are kept. */
    enum { OF_LAYER = 4 };
    size_t most = OF_LAYER * (size_t)w->weights->n_layers * (size_t)w->period->rule.n_micro;
    for (int32_t u = 0; u < w->shards->n_units; u++)
        /* zero1's gather, gathers after host updates and after copies up, reductions, dp's, copies
         * of both kinds of state, the host update, and copies of parameters; gathers, reductions
         * and sums over nodes of hsdp; both moves of central */
        most += 4 * (size_t)w->period->n_uses[u] + 3 * (size_t)w->period->rule.n_micro + 21;
    w->weights->items = weft_pool_array(&w->weights->pool, most, sizeof *w->weights->items);
    if (w->weights->items == NULL) return weft_fail_memory(err, "weights");
    for (int32_t u = 0; u < w->shards->n_units; u++) {
        const int32_t first = w->weights->n_items;
        item_gathers(w, u);
        const int32_t gathers = w->weights->n_items;
        if (w->shards->units[u].trainable) item_reductions(w, u);
        for (int32_t kind = WEFT_STATE_READ; kind <= WEFT_STATE_DOWN; kind++) {
            item_state(w, u, kind, false);
            item_state(w, u, kind, true);
        }
        item_host_update(w, u);
        item_parameters(w, u, first, gathers);
        if (w->shards->units[u].trainable) item_across(w, u);
    }
    for (int32_t i = 0; i < w->weights->n_layers; i++)
        item_layer(w, i);
    return WEFT_OK;
}
