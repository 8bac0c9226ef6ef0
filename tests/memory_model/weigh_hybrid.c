/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/memory_model/stage.h"

/* 4 ranks, 2 a node. Slots: 0 U:a, 1 U:b, 2 fill, 3 F:a, 4 F:b, 5 B:b, 6 B:a, 7 drain, 8 norm. Unit
 * a has 6144 elements with padding, and a rank 3072 of them. */
Test(weigh, an_hsdp_unit_is_shared_within_its_node)
{
    enum { FULL = 6144, OWN = FULL / 2 };
    struct weft_layer layers[] = {custom_layer("a", 6000, false), custom_layer("b", 500, false)};
    struct weft_weigh_options options = single;
    struct stage stage = {.model = make_model(layers, 2)};
    int32_t n_gathers = 0, n_reductions = 0, n_across = 0;
    options.hybrid = true;
    cut(&stage, 4, &(struct weft_block_rule){.blocks = 1});
    stage.shards->ranks_per_node = 2;
    weigh(&stage, &options);
    const struct weft_weighed_unit *unit = &stage.weights->units[0];
    const uint64_t hybrid = weft_weighed_strategies(unit, 1u << WEFT_POLICY_HSDP);
    cr_assert_neq(hybrid, 0);
    for (int32_t k = 0; k < unit->n_strategies; k++) {
        const struct weft_weighed_strategy *it = &unit->strategies[k];
        if (it->way.policy != WEFT_POLICY_HSDP) continue;
        for (int32_t s = 0; s < stage.period->n_slots; s++) {
            cr_assert_eq(in_tier(it, 0, WEFT_CATEGORY_SHARDED_PARAMETERS, s), OWN * 4);
            cr_assert_eq(in_tier(it, 0, WEFT_CATEGORY_OPTIMIZER_STATE, s), 2 * OWN * 4);
            cr_assert_eq(in_tier(it, 0, WEFT_CATEGORY_GATHERED_PARAMETERS, s),
                         s == 3 || s == 6 ? FULL * 4 : 0, "slot %d", (int)s);
        }
    }
    for (int32_t i = 0; i < stage.weights->n_items; i++) {
        const struct weft_item *item = &stage.weights->items[i];
        if (item->decision != 0 || item->strategies != hybrid) continue;
        n_gathers += item->kind == WEFT_ALL_GATHER && item->block_bytes == FULL * 4;
        n_reductions += item->kind == WEFT_REDUCE_SCATTER && item->stair_bytes == FULL * 4;
        if (item->kind != WEFT_ACROSS_REDUCE) continue;
        n_across++;
        cr_assert(item->first == 7 && item->last == 7 && !item->acquires);
        cr_assert(item->block_bytes == OWN * 4 && item->stair_bytes == OWN * 4);
    }
    cr_assert(n_gathers == 2 && n_reductions == 1 && n_across == 1);
    finish(&stage);
}

/* The same ranks. A rank has half of the parameters and a quarter of the state. Partial sums are of
 * the half, and the new parameters come in slots 1 and 2, before the first use in slot 3. */
Test(weigh, a_unit_of_nodes_shares_its_state_with_all_ranks)
{
    enum { FULL = 6144, HALF = FULL / 2, QUARTER = FULL / 4 };
    struct weft_layer layers[] = {custom_layer("a", 6000, false), custom_layer("b", 500, false)};
    struct weft_weigh_options options = single;
    struct stage stage = {.model = make_model(layers, 2)};
    int32_t n_gathers = 0, n_reductions = 0, n_across = 0, n_crossings = 0;
    options.hybrid = true;
    cut(&stage, 4, &(struct weft_block_rule){.blocks = 1});
    stage.shards->ranks_per_node = 2;
    weigh(&stage, &options);
    const struct weft_weighed_unit *unit = &stage.weights->units[0];
    const uint64_t nodes = weft_weighed_strategies(unit, 1u << WEFT_POLICY_NODES);
    cr_assert_neq(nodes, 0);
    for (int32_t k = 0; k < unit->n_strategies; k++) {
        const struct weft_weighed_strategy *it = &unit->strategies[k];
        if (it->way.policy != WEFT_POLICY_NODES) continue;
        for (int32_t s = 0; s < stage.period->n_slots; s++) {
            cr_assert_eq(in_tier(it, 0, WEFT_CATEGORY_SHARDED_PARAMETERS, s), HALF * 4);
            cr_assert_eq(in_tier(it, 0, WEFT_CATEGORY_OPTIMIZER_STATE, s), 2 * QUARTER * 4);
            cr_assert_eq(in_tier(it, 0, WEFT_CATEGORY_SHARDED_GRADIENTS, s),
                         s == 0 || s >= 7 ? QUARTER * 4 : 0, "slot %d", (int)s);
            cr_assert_eq(in_tier(it, 0, WEFT_CATEGORY_GATHERED_PARAMETERS, s),
                         s == 3 || s == 6 ? FULL * 4 : 0, "slot %d", (int)s);
        }
    }
    for (int32_t i = 0; i < stage.weights->n_items; i++) {
        const struct weft_item *item = &stage.weights->items[i];
        if (item->decision != 0 || item->strategies != nodes) continue;
        n_gathers += item->kind == WEFT_ALL_GATHER && item->block_bytes == FULL * 4;
        n_reductions += item->kind == WEFT_REDUCE_SCATTER && item->stair_bytes == FULL * 4;
        n_across += item->kind == WEFT_ACROSS_SCATTER && item->first == 7 && item->last == 7 &&
                    item->block_bytes == HALF * 4 && item->stair_bytes == HALF * 4;
        n_crossings += item->kind == WEFT_ACROSS_GATHER && item->first == 1 && item->last == 2 &&
                       item->block_bytes == HALF * 4 && item->stair_bytes == 0 && item->acquires;
    }
    cr_assert(n_gathers == 2 && n_reductions == 1 && n_across == 1 && n_crossings == 1);
    finish(&stage);
}

/* The same ranks, computing in bf16. The half is on the host, and in the arena in the update of
 * slot 0 and in uses. It crosses nodes in slot 1, and the copy down holds it there. */
Test(weigh, a_node_caches_its_half_on_the_host)
{
    enum { FULL = 6144, HALF = FULL / 2 };
    struct weft_layer layers[] = {custom_layer("a", 6000, false), custom_layer("b", 500, false)};
    struct weft_weigh_options options = single;
    struct stage stage = {.model = make_model(layers, 2)};
    int32_t n_gathers = 0, n_crossings = 0, n_downs = 0, n_fetches = 0;
    options.hybrid = true;
    options.batch.compute = WEFT_BF16;
    options.parameter_locations = 1 << WEFT_LOCATION_DEVICE | 1 << WEFT_LOCATION_HOST;
    cut(&stage, 4, &(struct weft_block_rule){.blocks = 1});
    stage.shards->ranks_per_node = 2;
    weigh(&stage, &options);
    const struct weft_weighed_unit *unit = &stage.weights->units[0];
    uint64_t cached = 0;
    for (int32_t k = 0; k < unit->n_strategies; k++) {
        const struct weft_weighed_strategy *it = &unit->strategies[k];
        if (it->way.policy != WEFT_POLICY_NODES || it->way.parameters != WEFT_LOCATION_HOST)
            continue;
        cached |= UINT64_C(1) << k;
        for (int32_t s = 0; s < stage.period->n_slots; s++) {
            cr_assert_eq(in_tier(it, 0, WEFT_CATEGORY_SHARDED_PARAMETERS, s),
                         s == 0 || s == 3 || s == 6 ? HALF * 2 : 0, "slot %d", (int)s);
            cr_assert_geq(in_tier(it, 1, WEFT_CATEGORY_SHARDED_PARAMETERS, s), HALF * 2);
        }
    }
    cr_assert_neq(cached, 0);
    for (int32_t i = 0; i < stage.weights->n_items; i++) {
        const struct weft_item *item = &stage.weights->items[i];
        if (item->decision != 0 || item->strategies != cached) continue;
        const bool in_window = item->first == 1 && item->last == 1 && !item->acquires;
        n_gathers += item->kind == WEFT_ALL_GATHER && item->block_bytes == FULL * 2;
        n_crossings += item->kind == WEFT_ACROSS_GATHER && in_window && item->stair_bytes == 0 &&
                       item->block_bytes == HALF * 2;
        n_downs += item->kind == WEFT_PARAMETERS_DOWN && in_window && item->stair_bytes == HALF * 2;
        n_fetches += item->kind == WEFT_PARAMETERS_FETCH && item->stair_bytes == HALF * 2;
    }
    cr_assert(n_gathers == 2 && n_crossings == 1 && n_downs == 1 && n_fetches == 2);
    finish(&stage);
}
