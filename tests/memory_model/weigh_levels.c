/* SPDX-License-Identifier: Apache-2.0 */
#include "memory_model/weigh.h"

#include "tests/shard/models.h"

/* Selective drops a byte that rounding to the arena's alignment gives back. */
static enum weft_status saving_needs(struct weft_subject *subject, struct weft_layer_work *work,
                                     struct weft_error *err)
{
    enum weft_status status = weft_kind_transformer_block.needs(subject, work, err);
    work->saved_bytes = weft_arena_round(work->saved_bytes);
    work->splits[WEFT_RECOMPUTE_SELECTIVE].kept_bytes = work->saved_bytes - 1;
    work->splits[WEFT_RECOMPUTE_SELECTIVE].dropped_bytes = 1;
    return status;
}

Test(weigh_levels, a_level_that_frees_nothing_is_not_listed)
{
    static const uint8_t levels[] = {7, 7};
    static const char *const names[] = {"device", "host", "whole"};
    struct weft_kind kind = weft_kind_transformer_block;
    struct weft_layer layers[] = {{.name = "a", .kind = &kind, .tie = -1},
                                  custom_layer("b", 2000, false)};
    kind.needs = saving_needs;
    for (int l = 0; l < 2; l++)
        layers[l].hidden = layers[l].outputs = 40;
    for (int key = WEFT_BLOCK_HEADS; key <= WEFT_BLOCK_KV_HEADS; key++)
        layers[0].keys[key].integer = 1;
    layers[0].keys[WEFT_BLOCK_FFN].integer = 900;
    const struct weft_weigh_options options = {
        .batch = {.samples = 1, .seq_len = 1, .compute = WEFT_F32},
        .n_moments = 2,
        .saved_homes = 1 << WEFT_HOME_DEVICE | 1 << WEFT_HOME_HOST,
        .recomputes = levels,
    };
    const struct weft_period_rule rule = {.n_micro = 1, .group = 1};
    const struct weft_block_rule blocks = {.blocks = 1};
    struct weft_model *model = make_model(layers, 2);
    struct weft_shards *shards = NULL;
    struct weft_period *period = NULL;
    struct weft_weights *weights = NULL;
    struct weft_error err = {0};
    cr_assert_eq(weft_shards_create(model, 2, &blocks, &shards, &err), WEFT_OK, "%s", err.text);
    cr_assert_eq(weft_period_create(model, shards, &rule, &period, &err), WEFT_OK, "%s", err.text);
    cr_assert_eq(weft_weights_create(model, shards, period, &options, &weights, &err), WEFT_OK,
                 "%s", err.text);
    cr_assert_eq(weights->n_layers, 1);
    const struct weft_weighed_layer *layer = &weights->layers[0];
    cr_assert_eq(layer->n_strategies, 3);
    for (int32_t k = 0; k < 3; k++)
        cr_assert_str_eq(weft_layer_choice_name(layer->strategies[k].choice), names[k]);
    weft_weights_destroy(weights);
    weft_period_destroy(period);
    weft_shards_destroy(shards);
    weft_model_destroy(model);
}
