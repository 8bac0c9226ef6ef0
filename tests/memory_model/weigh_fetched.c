/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/memory_model/stage.h"

/* Slots: 0 U:a, 1 U:b, 2 fill, 3 F:a, 4 F:b, 5 B:b, 6 B:a, 7 drain, 8 norm. A slice of a is 3072
 * elements of 2 bytes, and on the host 2 pages. */
Test(weigh, a_shard_on_the_host_is_here_in_its_update_and_for_its_gathers)
{
    enum { SLICE = 6144, PAGES = 8192 };
    struct weft_layer layers[] = {custom_layer("a", 6000, false), custom_layer("b", 500, false)};
    struct weft_weigh_options options = single;
    struct stage stage = {.model = make_model(layers, 2)};
    int32_t n[2] = {0}, n_items = 0;
    options.parameter_locations = 1 << WEFT_LOCATION_DEVICE | 1 << WEFT_LOCATION_HOST;
    options.batch.compute = WEFT_BF16;
    cut(&stage, 2, &(struct weft_block_rule){.blocks = 1});
    weigh(&stage, &options);
    const struct weft_weighed_unit *unit = &stage.weights->units[0];
    for (int32_t k = 0; k < unit->n_strategies; k++) {
        const struct weft_weighed_strategy *it = &unit->strategies[k];
        const bool fsdp = it->way.policy == WEFT_POLICY_FSDP;
        if (it->way.parameters == WEFT_LOCATION_DEVICE) continue;
        cr_assert(fsdp || it->way.policy == WEFT_POLICY_SDP);
        n[fsdp]++;
        for (int32_t s = 0; s < stage.period->n_slots; s++) {
            const bool here = s == 0 || s == 3 || (fsdp && s == 6);
            cr_assert_eq(in_tier(it, 0, WEFT_CATEGORY_SHARDED_PARAMETERS, s), here ? SLICE : 0,
                         "slot %d", (int)s);
            cr_assert_eq(in_tier(it, 1, WEFT_CATEGORY_SHARDED_PARAMETERS, s), PAGES);
        }
    }
    cr_assert(n[0] == 1 && n[1] == 1);
    static const struct {
        int32_t kind, gather, first, last;
    } expected[] = {{WEFT_PARAMETERS_DOWN, 0, 1, 1},
                    {WEFT_PARAMETERS_FETCH, 0, 1, 2},
                    {WEFT_PARAMETERS_FETCH, 1, 4, 5}};
    for (int32_t i = 0; i < stage.weights->n_items; i++) {
        const struct weft_item *item = &stage.weights->items[i];
        if (weft_item_kind_of(item)->family != WEFT_ITEM_PARAMETERS || item->decision != 0)
            continue;
        cr_assert_lt(n_items, 3);
        cr_assert_eq(item->kind, expected[n_items].kind);
        cr_assert_eq(item->gather, expected[n_items].gather);
        cr_assert_eq(item->first, expected[n_items].first);
        cr_assert_eq(item->last, expected[n_items].last);
        cr_assert(item->block_bytes == SLICE && item->stair_bytes == SLICE);
        n_items++;
    }
    cr_assert_eq(n_items, 3);
    finish(&stage);
}

Test(weigh, no_shard_in_f32_is_on_the_host)
{
    struct weft_layer layers[] = {custom_layer("a", 6000, false), custom_layer("b", 500, false)};
    struct weft_weigh_options options = single;
    struct stage stage = {.model = make_model(layers, 2)};
    options.parameter_locations = 1 << WEFT_LOCATION_DEVICE | 1 << WEFT_LOCATION_HOST;
    cut(&stage, 2, &(struct weft_block_rule){.blocks = 1});
    weigh(&stage, &options);
    for (int32_t u = 0; u < 2; u++)
        for (int32_t k = 0; k < stage.weights->units[u].n_strategies; k++)
            cr_assert_eq(stage.weights->units[u].strategies[k].way.parameters,
                         WEFT_LOCATION_DEVICE);
    finish(&stage);
}
