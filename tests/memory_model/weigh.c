/* SPDX-License-Identifier: Apache-2.0 */
#include "memory_model/weigh.h"

#include "base/rng.h"
#include "memory_model/life.h"
#include "spec/profile/profile.h"
#include "tests/memory_model/stage.h"

/* Three layers on two ranks, a block each:
 *
 *     layer  parameters  full bytes (f32)  slice bytes   output  saved  temporary
 *     a      1000        1024 * 4          512 * 4       300     1000   256
 *     b      2000        2048 * 4          1024 * 4      300     0      100
 *     c      500         512 * 4           256 * 4       40      700    0
 *
 *     slot   0   1   2   3     4   5   6   7   8   9   10     11
 *            Ua  Ub  Uc  fill  Fa  Fb  Fc  Bc  Bb  Ba  drain  norm
 */
enum { WEIGH_N_SLOTS = 12, KIB = 1024 };

static struct stage three_layers(const struct weft_weigh_options *options, bool frozen)
{
    struct weft_layer layers[] = {custom_layer("a", 1000, false), custom_layer("b", 2000, frozen),
                                  custom_layer("c", 500, false)};
    static const int64_t sizes[][3] = {{300, 1000, 256}, {300, 0, 100}, {40, 700, 0}};
    for (int l = 0; l < 3; l++) {
        layers[l].keys[WEFT_CUSTOM_OUTPUT].integer = sizes[l][0];
        layers[l].keys[WEFT_CUSTOM_SAVED].integer = sizes[l][1];
        layers[l].keys[WEFT_CUSTOM_TEMPORARY].integer = sizes[l][2];
    }
    struct stage stage = {.model = make_model(layers, 3)};
    cut(&stage, 2, &(struct weft_block_rule){.blocks = 1});
    weigh(&stage, options);
    return stage;
}

static int64_t sum(const struct weft_hold *holds, int32_t n, enum weft_category category,
                   int32_t slot)
{
    int64_t bytes = 0;
    for (int32_t i = 0; i < n; i++) {
        struct weft_life life = {holds[i].first, holds[i].last};
        if (holds[i].category == category && weft_life_has(life, slot)) bytes += holds[i].bytes;
    }
    return bytes;
}

static const struct weft_weighed_strategy *strategy_of(const struct weft_weighed_unit *unit,
                                                       enum weft_policy policy)
{
    for (int32_t k = 0; k < unit->n_strategies; k++)
        if (unit->strategies[k].way.policy == policy) return &unit->strategies[k];
    return NULL;
}

static int64_t unit_bytes(const struct weft_weights *weights, int32_t unit, enum weft_policy policy,
                          enum weft_category category, int32_t slot)
{
    const struct weft_weighed_strategy *of = strategy_of(&weights->units[unit], policy);
    return of == NULL ? 0 : sum(of->holds, of->n_holds, category, slot);
}

/* One unit under one policy: KiB of each category in each slot. */
struct rows {
    int64_t shard, gathered[WEIGH_N_SLOTS], reduced[WEIGH_N_SLOTS], gradient[WEIGH_N_SLOTS], state;
};

static void check_unit(const struct weft_weights *weights, int32_t unit, enum weft_policy policy,
                       const struct rows *expected)
{
    cr_assert_not_null(strategy_of(&weights->units[unit], policy));
    for (int32_t s = 0; s < WEIGH_N_SLOTS; s++) {
        int64_t kib[WEFT_CATEGORY_COUNT] = {
            [WEFT_CATEGORY_SHARDED_PARAMETERS] = expected->shard,
            [WEFT_CATEGORY_GATHERED_PARAMETERS] = expected->gathered[s],
            [WEFT_CATEGORY_SHARDED_GRADIENTS] = expected->reduced[s],
            [WEFT_CATEGORY_FULL_GRADIENTS] = expected->gradient[s],
            [WEFT_CATEGORY_OPTIMIZER_STATE] = expected->state,
        };
        for (int c = 0; c < WEFT_CATEGORY_COUNT; c++) {
            cr_assert_eq(unit_bytes(weights, unit, policy, (enum weft_category)c, s), kib[c] * KIB,
                         "unit %d, %s, slot %d, %s", unit, weft_policy_name(policy), s,
                         weft_category_text((enum weft_category)c));
        }
    }
}

Test(weigh, every_policy_in_every_slot)
{
    struct stage stage = three_layers(&single, false);
    /* Unit b: 8 KiB full, 4 KiB a rank; used in Fb (5) and Bb (8). */
    check_unit(stage.weights, 1, WEFT_POLICY_DP,
               &(struct rows){.gathered = {8, 8, 8, 8, 8, 8, 8, 8, 8, 8, 8, 8},
                              .gradient = {8, 8, 0, 0, 0, 0, 0, 0, 8, 8, 8, 8},
                              .state = 16});
    check_unit(stage.weights, 1, WEFT_POLICY_ZERO1,
               &(struct rows){.gathered = {8, 8, 8, 8, 8, 8, 8, 8, 8, 8, 8, 8},
                              .gradient = {0, 0, 0, 0, 0, 0, 0, 0, 8, 0, 0, 0},
                              .reduced = {4, 4, 0, 0, 0, 0, 0, 0, 0, 4, 4, 4},
                              .state = 8});
    check_unit(stage.weights, 1, WEFT_POLICY_SDP,
               &(struct rows){.shard = 4,
                              .gathered = {0, 0, 0, 0, 0, 8, 8, 8, 8, 0, 0, 0},
                              .gradient = {0, 0, 0, 0, 0, 0, 0, 0, 8, 0, 0, 0},
                              .reduced = {4, 4, 0, 0, 0, 0, 0, 0, 0, 4, 4, 4},
                              .state = 8});
    check_unit(stage.weights, 1, WEFT_POLICY_FSDP,
               &(struct rows){.shard = 4,
                              .gathered = {0, 0, 0, 0, 0, 8, 0, 0, 8, 0, 0, 0},
                              .gradient = {0, 0, 0, 0, 0, 0, 0, 0, 8, 0, 0, 0},
                              .reduced = {4, 4, 0, 0, 0, 0, 0, 0, 0, 4, 4, 4},
                              .state = 8});
    /* Unit a: 4 KiB full; Fa (4) and Ba (9), the last backward. */
    check_unit(stage.weights, 0, WEFT_POLICY_FSDP,
               &(struct rows){.shard = 2,
                              .gathered = {0, 0, 0, 0, 4, 0, 0, 0, 0, 4, 0, 0},
                              .gradient = {0, 0, 0, 0, 0, 0, 0, 0, 0, 4, 0, 0},
                              .reduced = {2, 0, 0, 0, 0, 0, 0, 0, 0, 0, 2, 2},
                              .state = 4});
    /* Unit c: 2 KiB full; Fc (6) and Bc (7) are neighbours, so there is nothing to release. */
    check_unit(stage.weights, 2, WEFT_POLICY_SDP,
               &(struct rows){.shard = 1,
                              .gathered = {0, 0, 0, 0, 0, 0, 2, 2, 0, 0, 0, 0},
                              .gradient = {0, 0, 0, 0, 0, 0, 0, 2, 0, 0, 0, 0},
                              .reduced = {1, 1, 1, 0, 0, 0, 0, 0, 1, 1, 1, 1},
                              .state = 2});
    cr_assert_null(strategy_of(&stage.weights->units[2], WEFT_POLICY_FSDP));
    finish(&stage);
}

Test(weigh, what_every_plan_holds)
{
    struct stage stage = three_layers(&single, false);
    const struct weft_weights *w = stage.weights;
    /* Outputs: a 512 over 4..8 (b's backward reads it), b 512 over 5..7, c 256 in 6. Gradients of
     * outputs: b's 512 over 7..8, a's 512 over 8..9. Saved: a 1024 over 4..9, c 768 over 6..7. */
    static const int64_t activations[WEIGH_N_SLOTS] = {0,    0,    0,    0,    1536, 2048,
                                                       3072, 3328, 2560, 1536, 0,    0};
    static const int64_t temporary[WEIGH_N_SLOTS] = {0, 0, 0, 0, 256, 256, 0, 0, 256, 256, 0, 0};
    for (int32_t s = 0; s < WEIGH_N_SLOTS; s++) {
        cr_assert_eq(sum(w->common, w->n_common, WEFT_CATEGORY_ACTIVATIONS, s), activations[s],
                     "slot %d", s);
        cr_assert_eq(sum(w->common, w->n_common, WEFT_CATEGORY_TEMPORARY, s), temporary[s]);
        cr_assert_eq(sum(w->common, w->n_common, WEFT_CATEGORY_BASE, s), 5120);
        cr_assert_eq(sum(w->common, w->n_common, WEFT_CATEGORY_COMMUNICATION, s),
                     2 * WEFT_AGREE_BYTES);
    }
    finish(&stage);
}

static void check_item(const struct weft_weights *weights, int32_t index, enum weft_collective kind,
                       int32_t gather, uint32_t policies, int32_t first, int32_t last,
                       int64_t stair_bytes)
{
    const struct weft_item *item = &weights->items[index];
    cr_assert_eq(item->decision, 1);
    cr_assert_eq(item->kind, (int32_t)kind);
    cr_assert_eq(item->gather, gather);
    cr_assert_eq(item->strategies,
                 weft_weighed_strategies(&weights->units[item->decision], policies));
    cr_assert_eq(item->n_blocks, 1);
    cr_assert_eq(item->first, first);
    cr_assert_eq(item->last, last);
    cr_assert_eq(item->block_bytes, 8 * KIB);
    cr_assert_eq(item->stair_bytes, stair_bytes);
    cr_assert_eq(item->stair_category, kind == WEFT_ALL_GATHER ? WEFT_CATEGORY_GATHERED_PARAMETERS
                                                               : WEFT_CATEGORY_FULL_GRADIENTS);
}

Test(weigh, items_of_a_unit)
{
    enum {
        DP = 1 << WEFT_POLICY_DP,
        ZERO1 = 1 << WEFT_POLICY_ZERO1,
        SDP = 1 << WEFT_POLICY_SDP,
        FSDP = 1 << WEFT_POLICY_FSDP,
    };
    struct stage stage = three_layers(&single, false);
    const struct weft_item *items = stage.weights->items;
    int32_t n = 0;
    while (items[n].decision != 1)
        n++;
    check_item(stage.weights, n++, WEFT_ALL_GATHER, 0, SDP | FSDP, 2, 4, 8 * KIB);
    check_item(stage.weights, n++, WEFT_ALL_GATHER, 0, ZERO1, 2, 4, 0);
    check_item(stage.weights, n++, WEFT_ALL_GATHER, 1, FSDP, 6, 7, 8 * KIB);
    check_item(stage.weights, n++, WEFT_REDUCE_SCATTER, 0, ZERO1 | SDP | FSDP, 9, 10, 8 * KIB);
    check_item(stage.weights, n++, WEFT_ALL_REDUCE, 0, DP, 9, 10, 0);
    cr_assert_eq(items[n].decision, 2);
    cr_assert_eq(stage.weights->n_items, 5 + 5 + 4);
    finish(&stage);
}

Test(weigh, frozen_units_have_parameters_alone)
{
    struct stage stage = three_layers(&single, true);
    /* With no update of b there is one U slot less: Fb is 4 and Bb is 7. */
    const struct weft_weights *w = stage.weights;
    cr_assert_eq(w->units[1].n_strategies, 3);
    cr_assert_null(strategy_of(&w->units[1], WEFT_POLICY_ZERO1));
    for (int32_t s = 0; s < w->n_slots; s++) {
        enum weft_category gathered = WEFT_CATEGORY_GATHERED_PARAMETERS;
        cr_assert_eq(unit_bytes(w, 1, WEFT_POLICY_DP, gathered, s), 8 * KIB);
        cr_assert_eq(unit_bytes(w, 1, WEFT_POLICY_FSDP, gathered, s), s == 4 || s == 7 ? 8192 : 0);
        for (int p = 0; p < WEFT_POLICY_COUNT; p++) {
            enum weft_policy policy = (enum weft_policy)p;
            cr_assert_eq(unit_bytes(w, 1, policy, WEFT_CATEGORY_SHARDED_GRADIENTS, s), 0);
            cr_assert_eq(unit_bytes(w, 1, policy, WEFT_CATEGORY_FULL_GRADIENTS, s), 0);
            cr_assert_eq(unit_bytes(w, 1, policy, WEFT_CATEGORY_OPTIMIZER_STATE, s), 0);
        }
    }
    int32_t n_items = 0;
    for (int32_t i = 0; i < w->n_items; i++) {
        if (w->items[i].decision != 1) continue;
        cr_assert_eq(w->items[i].kind, WEFT_ALL_GATHER);
        cr_assert_eq(w->items[i].first, n_items == 0 ? 0 : 5, "nothing has to be updated before");
        cr_assert_eq(w->items[i].last, n_items == 0 ? 3 : 6);
        n_items++;
    }
    cr_assert_eq(n_items, 2);
    finish(&stage);
}

Test(weigh, each_dtype_weighs_in_its_place)
{
    struct weft_weigh_options mixed = single;
    mixed.batch.compute = WEFT_BF16;
    mixed.reduce = WEFT_BF16;
    struct stage stage = three_layers(&mixed, false);
    /* Unit b: parameters and full gradient at 2 bytes, reduced gradient, master and moments at 4.
     */
    check_unit(stage.weights, 1, WEFT_POLICY_FSDP,
               &(struct rows){.shard = 2,
                              .gathered = {0, 0, 0, 0, 0, 4, 0, 0, 4, 0, 0, 0},
                              .gradient = {0, 0, 0, 0, 0, 0, 0, 0, 4, 0, 0, 0},
                              .reduced = {4, 4, 0, 0, 0, 0, 0, 0, 0, 4, 4, 4},
                              .state = 12});
    check_unit(stage.weights, 1, WEFT_POLICY_DP,
               &(struct rows){.gathered = {4, 4, 4, 4, 4, 4, 4, 4, 4, 4, 4, 4},
                              .gradient = {4, 4, 0, 0, 0, 0, 0, 0, 4, 4, 4, 4},
                              .state = 24});
    finish(&stage);
}

Test(weigh, an_optimizer_has_as_many_moments_as_it_says)
{
    static const int64_t elements = 2000; /* of unit b; a rank has half of them */
    for (int32_t n = 0; n <= 2; n++) {
        struct weft_weigh_options options = single;
        options.n_moments = n;
        struct stage stage = three_layers(&options, false);
        int64_t bytes =
            unit_bytes(stage.weights, 1, WEFT_POLICY_FSDP, WEFT_CATEGORY_OPTIMIZER_STATE, 0);
        cr_assert_geq(bytes, n * elements / 2 * 4);
        cr_assert_leq(bytes, n * (elements / 2 * 4 + 512));
        finish(&stage);
    }
}

/* Tokens are read in F of wte, then in F and B of the head, which are neighbours. */
Test(weigh, a_tied_unit_is_released_once)
{
    struct stage stage = {.model = make_tied_model(false)};
    cut(&stage, 2, &(struct weft_block_rule){.blocks = 1});
    weigh(&stage, &single);
    const struct weft_weights *w = stage.weights;
    enum weft_category gathered = WEFT_CATEGORY_GATHERED_PARAMETERS;
    for (int32_t s = 0; s < w->n_slots; s++) {
        bool held = s == 5 || s == 8 || s == 9;
        cr_assert_eq(unit_bytes(w, 0, WEFT_POLICY_FSDP, gathered, s) > 0, held, "slot %d", s);
        bool gradient = s >= 9 && s <= 12;
        cr_assert_eq(unit_bytes(w, 0, WEFT_POLICY_SDP, WEFT_CATEGORY_FULL_GRADIENTS, s) > 0,
                     gradient, "slot %d", s);
        cr_assert_eq(unit_bytes(w, 1, WEFT_POLICY_SDP, gathered, s) > 0, s == 5, "positions");
    }
    int32_t n_gathers = 0;
    for (int32_t i = 0; i < w->n_items; i++) {
        const struct weft_item *item = &w->items[i];
        if (item->decision != 0 || item->gather != 1) continue;
        n_gathers++;
        cr_assert_eq(item->first, 6);
        cr_assert_eq(item->last, 7);
    }
    cr_assert_eq(n_gathers, 1);
    cr_assert_null(strategy_of(&w->units[1], WEFT_POLICY_FSDP), "one use, nothing to release");
    finish(&stage);
}

/* A rotated period of layers of so many parameters; small ones are fused. */
static struct stage rotated_stage(const int64_t *parameters, int32_t n_layers)
{
    struct weft_layer layers[3];
    struct weft_period_rule rule = {.n_micro = 1, .group = 1, .rotated = true, .update_ahead = 1};
    static const char *const names[] = {"a", "b", "c"};
    for (int32_t l = 0; l < n_layers; l++)
        layers[l] = custom_layer(names[l], parameters[l], false);
    struct stage stage = {.model = make_model(layers, n_layers)};
    cut(&stage, 2,
        &(struct weft_block_rule){.block_bytes = 1024, .element_bytes = 4, .fuse = true});
    weft_period_destroy(stage.period);
    cr_assert_eq(weft_period_create(stage.model, stage.shards, &rule, &stage.period, NULL),
                 WEFT_OK);
    weigh(&stage, &single);
    return stage;
}

/* In a rotated period the last layer's backward is next to its forward, round the period's end. */
Test(weigh, norm_releases_nothing)
{
    struct stage stage = rotated_stage((const int64_t[]){1000, 500}, 2);
    const struct weft_period *period = stage.period;
    cr_assert_eq(period->uses[1][0], period->norm - 1);
    cr_assert_eq(period->uses[1][1], 0);
    cr_assert_not_null(strategy_of(&stage.weights->units[0], WEFT_POLICY_FSDP));
    cr_assert_null(strategy_of(&stage.weights->units[1], WEFT_POLICY_FSDP));
    finish(&stage);
}

/* c's update stands between the forwards of a and b, a unit together. */
Test(weigh, another_unit_s_update_releases_nothing)
{
    struct stage stage = rotated_stage((const int64_t[]){200, 200, 1000}, 3);
    const int32_t *uses = stage.period->uses[0], update = stage.period->update[1];
    cr_assert_eq(stage.shards->n_units, 2);
    cr_assert(uses[0] + 1 == update && update + 1 == uses[1]);
    cr_assert_gt(
        unit_bytes(stage.weights, 0, WEFT_POLICY_FSDP, WEFT_CATEGORY_GATHERED_PARAMETERS, update),
        0);
    finish(&stage);
}

/* A loss layer has no output, and relu's backward reads its own. */
Test(weigh, outputs_live_to_their_last_reader)
{
    struct weft_layer layers[] = {
        {.name = "in", .kind = &weft_kind_linear, .tie = -1, .hidden = 128, .outputs = 64},
        {.name = "relu", .kind = &weft_kind_relu, .tie = -1, .hidden = 64, .outputs = 64},
        {.name = "out",
         .kind = &weft_kind_linear,
         .frozen = true,
         .tie = -1,
         .hidden = 64,
         .outputs = 64},
        {.name = "loss", .kind = &weft_kind_classifier, .tie = -1, .hidden = 64, .outputs = 3},
    };
    struct stage stage = {.model = make_model(layers, 4)};
    cut(&stage, 1, &(struct weft_block_rule){.blocks = 1});
    weigh(&stage, &single);
    const struct weft_period *p = stage.period;
    struct weft_layer_work loss;
    cr_assert_eq(weft_layer_work(&layers[3], &single.batch, &loss, NULL), WEFT_OK);
    int64_t saved = weft_arena_round(loss.saved_bytes);
    /* In F of the loss: the input (512), targets, relu's output for its own backward, out's. The
     * output of `in` went with relu's forward, because nobody's backward reads it. */
    int64_t bytes = sum(stage.weights->common, stage.weights->n_common, WEFT_CATEGORY_ACTIVATIONS,
                        p->forward[3]);
    cr_assert_eq(bytes, 512 + 256 + 256 + 256 + saved);
    /* In B of relu: the input, relu's output, the gradients of relu's and of in's output. */
    bytes = sum(stage.weights->common, stage.weights->n_common, WEFT_CATEGORY_ACTIVATIONS,
                p->backward[1]);
    cr_assert_eq(bytes, 512 + 256 + 256 + 256);
    finish(&stage);
}

/* With gathers at the same slots, zero1 keeps a full copy. sdp keeps a shard, next to a temporary
 * full copy. */
Test(weigh, zero1_saves_no_more_than_the_shard)
{
    struct weft_layer layers[4];
    static const char *const names[] = {"a", "b", "c", "d"};
    for (uint64_t seed = 0; seed < 50; seed++) {
        for (int l = 0; l < 4; l++) {
            int64_t parameters = 1 + (int64_t)weft_rng_below(seed, 0, (uint64_t)l, 5000);
            layers[l] = custom_layer(names[l], parameters, false);
        }
        struct stage stage = {.model = make_model(layers, 4)};
        int64_t ranks = 1 + (int64_t)weft_rng_below(seed, 1, 0, 5);
        cut(&stage, ranks, &(struct weft_block_rule){.blocks = 1 + (int64_t)seed % 3});
        weigh(&stage, &single);
        for (int32_t u = 0; u < 4; u++) {
            int64_t full = stage.shards->units[u].padded_elements * 4;
            const int32_t *uses = stage.period->uses[u];
            for (int32_t s = 0; s < stage.weights->n_slots; s++) {
                int64_t zero1 = 0, sdp = 0;
                for (int c = 0; c < WEFT_CATEGORY_COUNT; c++) {
                    enum weft_category category = (enum weft_category)c;
                    zero1 += unit_bytes(stage.weights, u, WEFT_POLICY_ZERO1, category, s);
                    sdp += unit_bytes(stage.weights, u, WEFT_POLICY_SDP, category, s);
                }
                bool used = s >= uses[0] && s <= uses[stage.period->n_uses[u] - 1];
                cr_assert_eq(zero1 - sdp, (used ? 0 : full) - full / ranks);
            }
        }
        finish(&stage);
    }
}

Test(weigh, blocks_make_up_the_unit)
{
    struct stage stage = {.model = make_tied_model(false)};
    cut(&stage, 3, &(struct weft_block_rule){.blocks = 5});
    weigh(&stage, &single);
    for (int32_t i = 0; i < stage.weights->n_items; i++) {
        const struct weft_item *item = &stage.weights->items[i];
        const struct weft_unit *unit = &stage.shards->units[item->decision];
        cr_assert_eq(item->n_blocks, 5);
        cr_assert_eq(item->n_blocks * item->block_bytes, unit->padded_elements * 4);
        cr_assert_eq(item->block_bytes % WEFT_ARENA_ALIGN_BYTES, 0);
        cr_assert_leq(item->first, item->last, "no window is empty");
    }
    finish(&stage);
}

Test(weigh, rounds_to_the_arena)
{
    cr_assert_eq(weft_arena_round(0), 0);
    cr_assert_eq(weft_arena_round(1), 256);
    cr_assert_eq(weft_arena_round(256), 256);
    cr_assert_eq(weft_arena_round(257), 512);
    cr_assert_eq(weft_arena_round(INT64_MAX) % 256, 0);
    cr_assert_gt(weft_arena_round(INT64_MAX), INT64_MAX - 256);
}

static uint64_t strategies_that_keep(const struct weft_weighed_unit *unit, enum weft_keep keep)
{
    uint64_t strategies = 0;
    for (int32_t k = 0; k < unit->n_strategies; k++)
        strategies |= (uint64_t)(unit->strategies[k].way.keep == keep) << k;
    return strategies;
}

/* Bytes of a strategy's state that a tier holds in a slot, and items that pass it. */
static int64_t state_in(const struct weft_weighed_strategy *strategy, int32_t tier, int32_t slot)
{
    int64_t bytes = 0;
    for (int32_t i = 0; i < strategy->n_holds; i++) {
        const struct weft_hold *hold = &strategy->holds[i];
        const struct weft_life life = {hold->first, hold->last};
        if (hold->category == WEFT_CATEGORY_OPTIMIZER_STATE && hold->tier == tier &&
            weft_life_has(life, slot))
            bytes += hold->bytes;
    }
    return bytes;
}

Test(weigh, state_on_the_disk_is_on_the_device_in_its_update_alone)
{
    struct weft_layer layers[] = {custom_layer("a", 1000, false), custom_layer("b", 3000, true),
                                  custom_layer("c", 5000, false)};
    struct weft_period_rule rule = plain_train;
    struct weft_weigh_options options = single;
    struct stage stage = {.model = make_model(layers, 3)};
    rule.offloaded = true;
    options.state_keeps = 1 << WEFT_LOCATION_DEVICE | 1 << WEFT_LOCATION_DISK;
    cut(&stage, 2, &(struct weft_block_rule){.blocks = 1});
    weft_period_destroy(stage.period);
    cr_assert_eq(weft_period_create(stage.model, stage.shards, &rule, &stage.period, NULL),
                 WEFT_OK);
    weigh(&stage, &options);
    for (int32_t u = 0; u < stage.weights->n_units; u++) {
        const struct weft_weighed_unit *unit = &stage.weights->units[u];
        const uint64_t offloaded = strategies_that_keep(unit, WEFT_KEEP_DISK);
        const int32_t update = stage.period->update[u];
        cr_assert_eq(offloaded != 0, stage.shards->units[u].trainable);
        for (int32_t k = 0; k < unit->n_strategies; k++) {
            const struct weft_weighed_strategy *it = &unit->strategies[k];
            const bool there = offloaded >> k & 1u;
            const int64_t slice = stage.shards->units[u].padded_elements * 4 /
                                  (it->way.policy == WEFT_POLICY_DP ? 1 : 2);
            const int64_t state = update < 0 ? 0 : 2 * weft_arena_round(slice);
            const int64_t on_disk = there ? 2 * ((slice + 4095) / 4096 * 4096) : 0;
            for (int32_t s = 0; s < stage.period->n_slots; s++) {
                cr_assert_eq(state_in(it, 0, s), there && s != update ? 0 : state);
                cr_assert_eq(state_in(it, 1, s), on_disk);
            }
        }
    }
    int32_t n_read = 0, n_written = 0;
    for (int32_t i = 0; i < stage.weights->n_items; i++) {
        const struct weft_item *item = &stage.weights->items[i];
        const int32_t update = stage.period->update[item->decision];
        if (!weft_item_moves_state(item)) continue;
        const bool reads = item->kind == WEFT_STATE_READ;
        cr_assert(reads == item->acquires && reads == item->may_block);
        cr_assert_eq(reads ? item->last : item->first, reads ? update - 1 : update + 1);
        cr_assert_leq(item->first, item->last, "no window is empty");
        n_read += reads;
        n_written += !reads;
    }
    cr_assert(n_read == 4 && n_written == 4, "of dp and of what is sharded, of two units");
    finish(&stage);
}

/* One unit has 6000 elements on two ranks, 3000 a rank: 12,000 bytes in f32 are 3 pages, 6,000 in
 * bf16 are 2. */
static void check_host_update(enum weft_dtype compute, int32_t n_moments, int64_t state_pages,
                              int64_t parameter_pages)
{
    enum { PAGE = 4096, GRADIENT_PAGES = 3 };
    struct weft_layer layers[] = {custom_layer("a", 6000, false), custom_layer("b", 500, false)};
    struct weft_period_rule rule = plain_train;
    struct weft_weigh_options options = single;
    struct stage stage = {.model = make_model(layers, 2)};
    rule.offloaded = true;
    options.state_keeps = 1 << WEFT_KEEP_DEVICE | 1 << WEFT_KEEP_HOST_UPDATE;
    options.batch.compute = compute;
    options.n_moments = n_moments;
    cut(&stage, 2, &(struct weft_block_rule){.blocks = 1});
    weft_period_destroy(stage.period);
    cr_assert_eq(weft_period_create(stage.model, stage.shards, &rule, &stage.period, NULL),
                 WEFT_OK);
    weigh(&stage, &options);
    const struct weft_weighed_unit *unit = &stage.weights->units[0];
    const uint64_t there = strategies_that_keep(unit, WEFT_KEEP_HOST_UPDATE);
    cr_assert_neq(there, 0);
    for (int32_t k = 0; k < unit->n_strategies; k++) {
        if ((there >> k & 1u) == 0) continue;
        const struct weft_weighed_strategy *it = &unit->strategies[k];
        for (int32_t s = 0; s < stage.period->n_slots; s++) {
            cr_assert_eq(in_tier(it, 0, WEFT_CATEGORY_OPTIMIZER_STATE, s), 0);
            cr_assert_eq(in_tier(it, 1, WEFT_CATEGORY_OPTIMIZER_STATE, s), state_pages * PAGE);
            cr_assert_eq(in_tier(it, 1, WEFT_CATEGORY_SHARDED_GRADIENTS, s), GRADIENT_PAGES * PAGE);
            cr_assert_eq(in_tier(it, 1, WEFT_CATEGORY_SHARDED_PARAMETERS, s),
                         parameter_pages * PAGE);
        }
    }
    finish(&stage);
}

Test(weigh, an_update_on_the_host_has_master_moments_and_gradient_there)
{
    check_host_update(WEFT_F32, 2, 9, 0);
    check_host_update(WEFT_BF16, 0, 3, 2);
    check_host_update(WEFT_BF16, 2, 9, 2);
    check_host_update(WEFT_BF16, 1, 6, 2);
}

/* dp reduces once a step, so it has no place in a period that reduces every micro-step. */
Test(weigh, dp_is_left_out_where_every_micro_step_reduces)
{
    for (int32_t group = 1; group <= 2; group++) {
        struct weft_layer layers[] = {custom_layer("a", 6000, false),
                                      custom_layer("b", 500, false)};
        struct weft_period_rule rule = {.n_micro = 2, .group = group};
        struct stage stage = {.model = make_model(layers, 2)};
        bool has_dp = false;
        cut(&stage, 2, &(struct weft_block_rule){.blocks = 1});
        weft_period_destroy(stage.period);
        cr_assert_eq(weft_period_create(stage.model, stage.shards, &rule, &stage.period, NULL),
                     WEFT_OK);
        weigh(&stage, &single);
        const struct weft_weighed_unit *unit = &stage.weights->units[0];
        for (int32_t k = 0; k < unit->n_strategies; k++)
            has_dp = has_dp || unit->strategies[k].way.policy == WEFT_POLICY_DP;
        cr_assert_eq(has_dp, group == 2, "rounds of %d", (int)group);
        finish(&stage);
    }
}

/* Reduced every micro-step, gradients are added up on the device before they go down. */
Test(weigh, an_update_on_the_host_takes_gradients_of_all_micro_steps)
{
    struct weft_layer layers[] = {custom_layer("a", 6000, false), custom_layer("b", 500, false)};
    struct weft_period_rule rule = {.n_micro = 2, .group = 1, .offloaded = true};
    struct weft_weigh_options options = single;
    struct stage stage = {.model = make_model(layers, 2)};
    options.state_keeps = 1 << WEFT_KEEP_HOST_UPDATE;
    cut(&stage, 2, &(struct weft_block_rule){.blocks = 1});
    weft_period_destroy(stage.period);
    cr_assert_eq(weft_period_create(stage.model, stage.shards, &rule, &stage.period, NULL),
                 WEFT_OK);
    weigh(&stage, &options);
    const struct weft_weighed_unit *unit = &stage.weights->units[0];
    cr_assert_gt(unit->n_strategies, 0);
    for (int32_t k = 0; k < unit->n_strategies; k++) {
        const struct weft_weighed_strategy *it = &unit->strategies[k];
        int64_t most = 0;
        for (int32_t s = 0; s < stage.period->n_slots; s++) {
            const int64_t bytes = in_tier(it, 0, WEFT_CATEGORY_SHARDED_GRADIENTS, s);
            if (bytes > most) most = bytes;
        }
        cr_assert_eq(most, weft_arena_round(stage.shards->units[0].padded_elements * 4 / 2));
    }
    finish(&stage);
}

Test(weigh, saved_activations_on_the_host_leave_the_device_between_their_layers_slots)
{
    struct weft_weigh_options options = single;
    options.saved_locations = 1 << WEFT_LOCATION_DEVICE | 1 << WEFT_LOCATION_HOST;
    struct stage stage = three_layers(&options, false);
    cr_assert_eq(stage.weights->n_layers, 1, "b saves nothing, and c's backward is next");
    const struct weft_weighed_layer *layer = &stage.weights->layers[0];
    cr_assert_eq(layer->n_strategies, 2);
    for (int32_t k = 0; k < 2; k++) {
        const bool offloaded = layer->strategies[k].choice.saved_location == WEFT_LOCATION_HOST;
        for (int32_t s = 0; s < WEIGH_N_SLOTS; s++) {
            int64_t bytes[2] = {0, 0};
            for (int32_t i = 0; i < layer->strategies[k].n_holds; i++) {
                const struct weft_hold *hold = &layer->strategies[k].holds[i];
                const struct weft_life life = {hold->first, hold->last};
                if (weft_life_has(life, s)) bytes[hold->tier] += hold->bytes;
            }
            const bool here = offloaded ? s == 4 || s == 9 : s >= 4 && s <= 9;
            cr_assert_eq(bytes[0], here ? KIB : 0, "strategy %d, slot %d", k, s);
            cr_assert_eq(bytes[1], offloaded ? 4096 : 0, "strategy %d, slot %d", k, s);
        }
    }
    finish(&stage);
}

/* A level keeps its bytes from forward (4) to backward (9), or only in these two if they are on the
 * host. What it drops is in the temporaries of both. */
Test(weigh, dropped_activations_are_temporaries_of_their_layers_slots)
{
    enum {
        LEVELS =
            1 << WEFT_RECOMPUTE_NONE | 1 << WEFT_RECOMPUTE_SELECTIVE | 1 << WEFT_RECOMPUTE_WHOLE
    };
    static const uint8_t levels[] = {LEVELS, LEVELS, LEVELS};
    static const char *const names[] = {"device", "host", "selective", "selective+host", "whole"};
    struct weft_layer layers[] = {custom_layer("a", 0, false), custom_layer("b", 2000, false),
                                  custom_layer("c", 500, false)};
    layers[0] = (struct weft_layer){.name = "a", .kind = &weft_kind_transformer_block, .tie = -1};
    for (int l = 0; l < 3; l++)
        layers[l].hidden = layers[l].outputs = 40;
    for (int key = WEFT_BLOCK_HEADS; key <= WEFT_BLOCK_KV_HEADS; key++)
        layers[0].keys[key].integer = 1;
    layers[0].keys[WEFT_BLOCK_FFN].integer = 900;
    struct weft_weigh_options options = single;
    options.saved_locations = 1 << WEFT_LOCATION_DEVICE | 1 << WEFT_LOCATION_HOST;
    options.recomputes = levels;
    struct stage stage = {.model = make_model(layers, 3)};
    cut(&stage, 2, &(struct weft_block_rule){.blocks = 1});
    weigh(&stage, &options);
    struct weft_layer_work work;
    cr_assert_eq(weft_layer_work(&stage.model->layers[0], &options.batch, &work, NULL), WEFT_OK);
    cr_assert_eq(stage.weights->n_layers, 1, "custom layers save nothing here");
    const struct weft_weighed_layer *layer = &stage.weights->layers[0];
    const int32_t forward = stage.period->forward[0], backward = stage.period->backward[0];
    cr_assert_eq(layer->n_strategies, 5);
    for (int32_t k = 0; k < 5; k++) {
        const struct weft_weighed_saved *it = &layer->strategies[k];
        const struct weft_layer_work at = weft_layer_work_at(&work, it->choice.recompute);
        const bool offloaded = it->choice.saved_location == WEFT_LOCATION_HOST;
        cr_assert_str_eq(weft_layer_choice_name(it->choice), names[k]);
        cr_assert_eq(it->saved_bytes, at.saved_bytes);
        for (int32_t s = 0; s < stage.period->n_slots; s++) {
            int64_t kept = 0, temporary = 0;
            for (int32_t i = 0; i < it->n_holds; i++) {
                const struct weft_life life = {it->holds[i].first, it->holds[i].last};
                if (!weft_life_has(life, s) || it->holds[i].tier != 0) continue;
                *(it->holds[i].category == WEFT_CATEGORY_TEMPORARY ? &temporary : &kept) +=
                    it->holds[i].bytes;
            }
            const bool own = s == forward || s == backward;
            const int64_t of_forward = weft_arena_round(at.forward_temporary_bytes) -
                                       weft_arena_round(work.forward_temporary_bytes);
            const int64_t of_backward = weft_arena_round(at.backward_temporary_bytes) -
                                        weft_arena_round(work.backward_temporary_bytes);
            cr_assert_eq(kept,
                         own || (!offloaded && s > forward && s < backward)
                             ? weft_arena_round(at.saved_bytes)
                             : 0,
                         "%s, slot %d", names[k], s);
            cr_assert_eq(temporary,
                         s == forward    ? of_forward
                         : s == backward ? of_backward
                                         : 0,
                         "%s, slot %d", names[k], s);
        }
    }
    finish(&stage);
}

/* Each of the two moments has 36 parts of the arena's alignment. */
Test(weigh, copies_to_the_host_go_in_equal_blocks_of_a_least_size)
{
    struct weft_weigh_options options = single;
    const int64_t elements = 36 * WEFT_ARENA_ALIGN_BYTES / 4;
    cr_assert_eq(weft_weigh_state_blocks(&options, elements), 1, "no size is asked for");
    options.copy_block_bytes = 1;
    cr_assert_eq(weft_weigh_state_blocks(&options, elements), 6, "the most of the usual 8");
    cr_assert_eq(weft_weigh_saved_blocks(&options, 11 * 256 - 5), 11, "none of 2 to 8 divides it");
    cr_assert_eq(weft_weigh_saved_blocks(&options, 17 * 256), 1, "none of 2 to 16 does");
    options.copy_block_bytes = 2 * 36 * WEFT_ARENA_ALIGN_BYTES / 5;
    cr_assert_eq(weft_weigh_state_blocks(&options, elements), 4, "5 would be uneven");
    options.copy_block_bytes = 36 * WEFT_ARENA_ALIGN_BYTES + 1;
    cr_assert_eq(weft_weigh_state_blocks(&options, elements), 1, "two are too small");
}

Test(weigh, a_ring_is_on_the_host_where_that_is_a_tier)
{
    struct weft_weigh_options options = single;
    options.state_keeps = 1 << WEFT_KEEP_DEVICE | 1 << WEFT_KEEP_DISK;
    cr_assert_eq(weft_weigh_staging_tier(&options), 0);
    options.saved_locations = 1 << WEFT_LOCATION_DEVICE | 1 << WEFT_LOCATION_HOST;
    cr_assert_eq(weft_weigh_staging_tier(&options), 1);
    options.saved_locations = 0;
    options.state_keeps |= 1 << WEFT_KEEP_HOST;
    cr_assert_eq(weft_weigh_staging_tier(&options), 1);
    cr_assert_eq(weft_weigh_tier(&options, WEFT_LOCATION_DISK), 2);
}

/* AdamW, an element: master and moments read and written, the gradient read. */
Test(weigh, an_update_moves_master_moments_and_gradient)
{
    struct weft_weigh_options options = single;
    cr_assert_eq(weft_weigh_update_bytes(&options), 2 * 12 + 4);
    options.n_moments = 0;
    cr_assert_eq(weft_weigh_update_bytes(&options), 2 * 4 + 4);
    options.batch.compute = WEFT_BF16;
    options.n_moments = 1;
    cr_assert_eq(weft_weigh_update_bytes(&options), 2 * 8 + 4 + 2);
    options.accumulate = WEFT_BF16;
    cr_assert_eq(weft_weigh_update_bytes(&options), 2 * 8 + 2 + 2);
}

/* Bytes of staging that all strategies hold in a slot. */
static int64_t staged_in(const struct weft_weights *weights, int32_t slot)
{
    int64_t bytes = 0;
    for (int32_t i = 0; i < weights->n_common; i++) {
        const struct weft_hold *hold = &weights->common[i];
        const bool holds = hold->first <= slot && slot <= hold->last && hold->tier == 0;
        if (holds && hold->category == WEFT_CATEGORY_STAGING) bytes += hold->bytes;
    }
    return bytes;
}

Test(weigh, staging_of_communicators_is_held_throughout)
{
    struct weft_layer layer = custom_layer("a", 6000, false);
    struct weft_weigh_options options = single;
    for (int64_t staging = 0; staging <= 8192; staging += 4096) {
        struct stage stage = {.model = make_model(&layer, 1)};
        options.staging_bytes = staging;
        cut(&stage, 2, &(struct weft_block_rule){.blocks = 1});
        weigh(&stage, &options);
        for (int32_t s = 0; s < stage.period->n_slots; s++)
            cr_assert_eq(staged_in(stage.weights, s), staging);
        finish(&stage);
    }
}

static void refuse(int64_t parameters, int64_t saved_bytes, int64_t base_bytes, const char *text)
{
    struct weft_layer layer = custom_layer("wide", parameters, false);
    layer.keys[WEFT_CUSTOM_SAVED].integer = saved_bytes;
    struct weft_weigh_options options = single;
    options.base_bytes = base_bytes;
    struct stage stage = {.model = make_model(&layer, 1)};
    cut(&stage, 1, &(struct weft_block_rule){.blocks = 1});
    struct weft_error err = {0};
    enum weft_status status = weft_weights_create(stage.model, stage.shards, stage.period, &options,
                                                  &stage.weights, &err);
    cr_assert_eq(status, WEFT_E_DATA);
    cr_assert_null(stage.weights);
    cr_assert_not_null(strstr(err.text, text), "%s", err.text);
    finish(&stage);
}

Test(weigh, refuses_sums_that_overflow)
{
    refuse(INT64_MAX / 8, 0, 0, "more bytes than 64 bits");
    refuse(INT64_MAX / 1024, 0, INT64_MAX - 4096, "more bytes than 64 bits");
    refuse(1, INT64_MAX, 0, "more bytes than 64 bits");
    refuse(1, 0, INT64_MAX, "more bytes than 64 bits");
    refuse(1, 0, -1, "base memory is -1 bytes");
}

Test(weigh, categories_read_what_they_name)
{
    for (int c = 0; c < WEFT_CATEGORY_COUNT; c++) {
        enum weft_category read = WEFT_CATEGORY_COUNT;
        cr_assert(weft_category_read(weft_category_key((enum weft_category)c), &read));
        cr_assert_eq((int)read, c);
        cr_assert_not_null(weft_category_text((enum weft_category)c));
    }
    enum weft_category read = WEFT_CATEGORY_COUNT;
    cr_assert_not(weft_category_read("sharded parameters", &read), "that is its text");
    cr_assert_eq(read, WEFT_CATEGORY_COUNT);
}
