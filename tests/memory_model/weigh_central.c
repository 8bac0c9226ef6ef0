/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/memory_model/stage.h"

enum { FULL = 6144 };

static int64_t held_bytes(const struct stage *stage, enum weft_policy policy, int32_t slot,
                          enum weft_category category)
{
    const struct weft_weighed_unit *unit = &stage->weights->units[0];
    int32_t k = 0;
    while (k < unit->n_strategies && unit->strategies[k].way.policy != policy)
        k++;
    cr_assert_lt(k, unit->n_strategies, "unit a has no such policy");
    return in_tier(&unit->strategies[k], 0, category, slot);
}

/* 4 ranks. Slots: 0 U:a, 1 U:b, 2 fill, 3 F:a, 4 F:b, 5 B:b, 6 B:a, 7 drain, 8 norm. Unit a has
 * 6144 elements with padding. The owner holds what a rank holds under dp, in every slot. */
Test(weigh, a_central_unit_is_whole_on_its_owner)
{
    struct weft_layer layers[] = {custom_layer("a", 6000, false), custom_layer("b", 500, false)};
    struct weft_weigh_options options = single;
    struct stage stage = {.model = make_model(layers, 2)};
    int32_t n_gathers = 0, n_reductions = 0;
    options.central = true;
    cut(&stage, 4, &(struct weft_block_rule){.blocks = 2});
    weigh(&stage, &options);
    const struct weft_weighed_unit *unit = &stage.weights->units[0];
    const uint64_t central = weft_weighed_strategies(unit, 1u << WEFT_POLICY_CENTRAL);
    cr_assert_neq(central, 0);
    for (int32_t s = 0; s < stage.period->n_slots; s++) {
        cr_assert_eq(held_bytes(&stage, WEFT_POLICY_CENTRAL, s, WEFT_CATEGORY_GATHERED_PARAMETERS),
                     FULL * 4);
        cr_assert_eq(held_bytes(&stage, WEFT_POLICY_CENTRAL, s, WEFT_CATEGORY_OPTIMIZER_STATE),
                     2 * FULL * 4);
        cr_assert_eq(held_bytes(&stage, WEFT_POLICY_CENTRAL, s, WEFT_CATEGORY_FULL_GRADIENTS),
                     s == 0 || s >= 6 ? FULL * 4 : 0, "slot %d", (int)s);
        for (int c = 0; c < WEFT_CATEGORY_COUNT; c++)
            cr_assert_eq(held_bytes(&stage, WEFT_POLICY_CENTRAL, s, (enum weft_category)c),
                         held_bytes(&stage, WEFT_POLICY_DP, s, (enum weft_category)c));
    }
    for (int32_t i = 0; i < stage.weights->n_items; i++) {
        const struct weft_item *item = &stage.weights->items[i];
        if (item->decision != 0 || item->strategies != central) continue;
        cr_assert(item->n_blocks == 2 && item->block_bytes == FULL * 4 / 2);
        cr_assert_eq(item->stair_bytes, 0, "both move in place");
        n_gathers += item->kind == WEFT_ALL_GATHER && item->first == 1 && item->last == 2;
        n_reductions += item->kind == WEFT_REDUCE_SCATTER && item->first == 7 && item->last == 7;
    }
    cr_assert(n_gathers == 1 && n_reductions == 1);
    finish(&stage);
}
